"""A person presses the buttons of the pack's pages in a real browser."""

import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import async_playwright
from tests.patience import PATIENT
from tests.servers import Server, running_server
from tests.smtp_server import smtp_server

pytestmark = pytest.mark.anyio

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium (apt install chromium)", allow_module_level=True)

UID = "_test-premium-active"
MAIL = {"to": ["a@x.example"], "subject": "x", "sender": "newsletter", "copy": False}
BACKEND: dict[str, Any] = {"packs__enabled": ["backend"]}


@pytest.fixture
async def page() -> AsyncIterator[Any]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--no-proxy-server"],
            timeout=PATIENT * 1000,
        )
        opened = await browser.new_page()
        opened.set_default_timeout(PATIENT * 1000)
        yield opened
        await browser.close()


def called(server: Server, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with server.client() as admin:
        answer = admin.post(f"/v1/tools/{tool}", json=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_click_unsubscribes(tmp_path_factory: pytest.TempPathFactory, page: Any) -> None:
    with (
        smtp_server() as inbox,
        running_server(tmp_path_factory, mail__url=inbox.url, **BACKEND) as server,
    ):
        called(server, "send_email", MAIL)
        await page.goto(str(inbox.mails[0].message["list-unsubscribe"]).strip("<>"))
        await page.get_by_role("button").click()
        await page.get_by_text("You are unsubscribed").wait_for()
        with server.client() as admin:
            again = admin.post("/v1/tools/send_email", json=MAIL)
    assert again.status_code == 409, again.text
    assert len(inbox.mails) == 1


async def test_a_click_cancels(tmp_path_factory: pytest.TempPathFactory, page: Any) -> None:
    with running_server(tmp_path_factory, **BACKEND) as server:
        portal = called(server, "get_payment_portal", {"uid": UID})
        await page.goto(portal["url"])
        await page.get_by_role("button").click()
        await page.get_by_role("button").wait_for(state="detached")
        assert "error" not in await page.inner_text("body")
        record = called(server, "firestore_read", {"path": f"users/{UID}"})
    assert record["subscription"]["cancellation"]["pending"] is True
