"""The pages in a real browser: keyboard only, narrow, dark, and what its rules make of them."""

import secrets
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest
from playwright.async_api import Browser, Page, async_playwright
from tests.identity.oauth.flow import PREFIX, Flow
from tests.patience import PATIENT
from tests.servers import Server

pytestmark = pytest.mark.anyio

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium (apt install chromium)", allow_module_level=True)

VERIFIER = secrets.token_urlsafe(48)
CONTRAST = """
() => {
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].reduce((sum, one, index) => {
    const part = one / 255;
    const linear = part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    return sum + linear * [0.2126, 0.7152, 0.0722][index];
  }, 0);
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const ratios = [...document.querySelectorAll('h1, h2, p, span, strong, dt, dd, button, code')]
    .filter(element => element.innerText.trim())
    .map(element => {
      const pair = [parse(getComputedStyle(element).color), behind(element)].map(light);
      return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    });
  return Math.min(...ratios);
}
"""


class Listener(BaseHTTPRequestHandler):
    """A client that waits for its answer on loopback."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Back at the client")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def listening() -> Iterator[str]:
    """Where the client listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listener.server_address[1]}/callback"
        listener.shutdown()
        thread.join()


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--no-proxy-server"],
            timeout=PATIENT * 1000,
        )
        yield launched
        await launched.close()


@pytest.fixture
async def page(request: pytest.FixtureRequest, browser: Browser) -> AsyncIterator[Page]:
    """A narrow page that shares nothing with others; what its console says is an error."""
    context = await browser.new_context(
        viewport={"width": 320, "height": 640},
        color_scheme=getattr(request, "param", "light"),
    )
    opened = await context.new_page()
    opened.set_default_timeout(PATIENT * 1000)
    told: list[str] = []
    opened.on("console", lambda message: told.append(message.text))
    yield opened
    await context.close()
    broken = [line for line in told if "Content Security Policy" in line]
    assert [line for line in broken if not line.startswith("Framing")] == []


def question(server: Server, redirect: str, name: str = "Example") -> str:
    """The address a new client opens."""
    told = {"redirect_uris": [redirect], "client_name": name}
    with server.client(None) as http:
        client_id = http.post(f"{PREFIX}/register", json=told).json()["client_id"]
    asked = Flow(httpx2.AsyncClient(), client_id, redirect, VERIFIER).question()
    return f"{server.url}{PREFIX}/authorize?{urlencode(asked)}"


async def fits(page: Page) -> None:
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 320, "nothing is cut off on a narrow screen"
    styled = await page.evaluate("getComputedStyle(document.querySelector('main')).paddingLeft")
    assert styled == "16px", "the style sheet was let through"
    assert await page.evaluate("document.documentElement.lang") == "en"
    assert await page.title()


async def signed_in(page: Page, server: Server, url: str) -> None:
    """With the keyboard alone."""
    await page.goto(url)
    await fits(page)
    assert await page.get_by_label("Key", exact=True).evaluate("e => e === document.activeElement")
    await page.keyboard.type(server.admin_key)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Allow").wait_for()
    await fits(page)


def brought(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).query))


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
async def test_a_person_allows_with_the_keyboard(
    page: Page, server: Server, listening: str
) -> None:
    name = "A client with quite a long name-without-any-place-to-break-it " + "x" * 40
    await signed_in(page, server, question(server, listening, name))
    assert urlsplit(listening).netloc in await page.inner_text("main")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.type") == "checkbox"
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.innerText") == "Allow"
    await page.keyboard.press("Enter")
    await page.get_by_text("Back at the client").wait_for()
    told = brought(page)
    assert told["code"].startswith("tgc_")
    assert (told["state"], told["iss"]) == ("s t&a=te", server.url)
    await page.go_back()
    await page.get_by_role("button", name="Deny").click()
    await page.get_by_text("Back at the client").wait_for()
    assert brought(page)["error"] == "access_denied", "who goes back can still say no"
    assert await page.context.cookies(server.url) == []


async def test_a_person_denies_with_the_keyboard(
    page: Page, server: Server, listening: str
) -> None:
    await signed_in(page, server, question(server, listening))
    for _ in range(3):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.get_by_text("Back at the client").wait_for()
    assert brought(page)["error"] == "access_denied"


async def test_a_person_allows_reading_only_with_the_keyboard(
    page: Page, server: Server, listening: str
) -> None:
    url = question(server, listening)
    await signed_in(page, server, url)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    assert await page.get_by_label("Reading only").is_checked()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.get_by_text("Back at the client").wait_for()
    form = {
        "grant_type": "authorization_code",
        "code": brought(page)["code"],
        "client_id": dict(parse_qsl(urlsplit(url).query))["client_id"],
        "code_verifier": VERIFIER,
    }
    with server.client(None) as http:
        assert http.post(f"{PREFIX}/token", data=form).json()["scope"] == "tools:read"


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
async def test_the_first_page_says_what_this_is(page: Page, server: Server) -> None:
    await page.goto(server.url)
    await page.get_by_role("heading", name="A door for AI agents").wait_for()
    await fits(page)
    assert f"{server.url}/mcp" in await page.inner_text("main")
    shown = await page.evaluate("document.querySelector('header img').naturalWidth")
    assert shown > 0, "the icon was let through"


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
async def test_text_stands_out_from_what_is_behind_it(
    page: Page, server: Server, listening: str
) -> None:
    """4.5 to 1 at least, as WCAG 2.2 (1.4.3) asks for."""
    await signed_in(page, server, question(server, listening))
    assert await page.evaluate(CONTRAST) >= 4.5


async def test_a_wrong_key_is_told_where_it_was_typed(
    page: Page, server: Server, listening: str
) -> None:
    await page.goto(question(server, listening))
    await page.get_by_label("Key", exact=True).fill("wrong")
    await page.keyboard.press("Enter")
    await page.get_by_role("alert").wait_for()
    await fits(page)
    field = page.get_by_label("Key", exact=True)
    assert await field.get_attribute("aria-invalid") == "true"
    assert await field.input_value() == ""
    assert "wrong" not in page.url


async def test_an_error_is_told_on_a_page(page: Page, server: Server, listening: str) -> None:
    await page.goto(question(server, listening).replace("callback", "elsewhere"))
    await page.get_by_role("heading", name="This did not work").wait_for()
    await fits(page)
    assert page.url.startswith(server.url)


async def test_a_page_cannot_be_framed(page: Page, server: Server, listening: str) -> None:
    await page.goto(listening)
    address = question(server, listening)
    await page.evaluate(
        "url => { const frame = document.createElement('iframe'); frame.src = url;"
        " document.body.append(frame); return new Promise(done => frame.onload = done); }",
        address,
    )
    frame = page.frames[-1]
    assert await frame.locator("form").count() == 0
