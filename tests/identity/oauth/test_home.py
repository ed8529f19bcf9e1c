"""What a stranger finds at `/`: what this is and where to go, and nothing of the tools."""

import pytest
from tests.transports.conftest import Web

pytestmark = pytest.mark.anyio

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_browser_gets_a_page_and_everybody_else_text(web: Web) -> None:
    async with web.client(None) as http:
        page, text = await http.get("/", headers=BROWSER), await http.get("/")
        posted = await http.post("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    for answer in (page, text):
        assert answer.status_code == 200
        assert "http://127.0.0.1/mcp" in answer.text
        assert "http://127.0.0.1/openapi.json" in answer.text
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")


async def test_it_names_no_tool(web: Web) -> None:
    async with web.client(None) as http:
        told = (await http.get("/", headers=BROWSER)).text + (await http.get("/")).text
    assert [tool.name for tool in web.kit.app.gate.catalogue if tool.name in told] == []


@pytest.mark.parametrize(
    ("path", "media_type", "begins"),
    [
        ("/favicon.ico", "image/x-icon", b"\x00\x00\x01\x00"),
        ("/favicon.svg", "image/svg+xml", b"<svg"),
    ],
)
async def test_the_icon_is_there(web: Web, path: str, media_type: str, begins: bytes) -> None:
    async with web.client(None) as http:
        answer = await http.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.content.startswith(begins)


async def test_an_error_page_says_what_to_do(web: Web) -> None:
    async with web.client(None) as http:
        answer = await http.get("/authorize", headers=BROWSER)
    assert answer.status_code == 400
    assert "What to do now" in answer.text
    assert 'href="/"' in answer.text
