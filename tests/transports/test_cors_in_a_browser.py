"""A page of an allowed origin calls the server from a real browser; a page of another cannot."""

import json
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright
from tests.patience import PATIENT
from tests.servers import Server, running_server
from tests.transports.mcp_requests import LEGACY, MODERN, initialize, tool_call

pytestmark = pytest.mark.anyio

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium (apt install chromium)", allow_module_level=True)

FETCH = """
async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    const text = await answer.text();
    return {status: answer.status, text, headers: Object.fromEntries(answer.headers)};
  } catch (error) {
    return {failed: String(error)};
  }
}
"""


class Site(BaseHTTPRequestHandler):
    """A web application of somebody, on another origin than the server."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>A page</title>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where the site listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield site.server_address[1]
        site.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Server]:
    """A server that one origin may call; every name below localhost leads to the same site."""
    allowed = {
        "server__allowed_hosts": ["127.0.0.1"],
        "server__allowed_origins": [f"http://app.localhost:{port}"],
    }
    with running_server(tmp_path_factory, **allowed) as started:
        yield started


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Any]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--no-proxy-server"],
            timeout=PATIENT * 1000,
        )
        yield launched
        await launched.close()


async def page_at(browser: Any, host: str, port: int) -> Page:
    page = await browser.new_page()
    page.set_default_timeout(PATIENT * 1000)
    await page.goto(f"http://{host}:{port}/")
    return page


async def fetched(page: Page, url: str, **options: Any) -> dict[str, Any]:
    return await page.evaluate(FETCH, [url, options])


def bearer(gate: Server, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {gate.admin_key}", **headers}


async def test_a_page_of_an_allowed_origin_calls_tools(
    browser: Any, gate: Server, port: int
) -> None:
    page = await page_at(browser, "app.localhost", port)
    for era in (MODERN, LEGACY):
        asked = tool_call(era, "list_collections", {})
        headers = bearer(gate, **asked.headers)
        for _ in range(3):
            answer = await fetched(
                page, f"{gate.url}/mcp", method="POST", headers=headers, body=json.dumps(asked.body)
            )
            assert answer.get("status") == 200, answer
            assert json.loads(answer["text"])["result"]["isError"] is False
            assert answer["headers"]["x-request-id"]
    headers = bearer(gate, **{"X-Dry-Run": "true", "X-Request-Id": "page", "X-Project-Id": "1"})
    answer = await fetched(
        page, f"{gate.url}/v1/tools/list_collections", method="POST", headers=headers, body="{}"
    )
    assert (answer.get("status"), answer["headers"]["x-request-id"]) == (200, "page"), answer


async def test_a_page_opens_and_ends_an_mcp_session(browser: Any, gate: Server, port: int) -> None:
    page = await page_at(browser, "app.localhost", port)
    asked = initialize("elicitation")
    headers = bearer(gate, **asked.headers)
    opened = await fetched(
        page, f"{gate.url}/mcp", method="POST", headers=headers, body=json.dumps(asked.body)
    )
    session = opened["headers"]["mcp-session-id"]
    headers = bearer(gate, **{"Mcp-Session-Id": session, "Mcp-Protocol-Version": LEGACY})
    ended = await fetched(page, f"{gate.url}/mcp", method="DELETE", headers=headers)
    assert ended.get("status") == 200, ended


async def test_a_page_learns_how_to_sign_in_and_registers(
    browser: Any, gate: Server, port: int
) -> None:
    page = await page_at(browser, "app.localhost", port)
    refused = await fetched(page, f"{gate.url}/mcp", method="POST", body="{}")
    assert refused.get("status") == 401, refused
    challenge = refused["headers"]["www-authenticate"]
    metadata = challenge.partition('resource_metadata="')[2].partition('"')[0]
    version = {"MCP-Protocol-Version": LEGACY}
    resource = json.loads((await fetched(page, metadata, headers=version))["text"])
    server = f"{resource['authorization_servers'][0]}/.well-known/oauth-authorization-server"
    endpoints = json.loads((await fetched(page, server, headers=version))["text"])
    registered = await fetched(
        page,
        endpoints["registration_endpoint"],
        method="POST",
        headers={"Content-Type": "application/json"},
        body=json.dumps({"redirect_uris": [f"http://localhost:{port}/"], "client_name": "Page"}),
    )
    assert registered.get("status") == 201, registered
    told = await fetched(
        page,
        endpoints["token_endpoint"],
        method="POST",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body="grant_type=authorization_code&code=wrong",
    )
    assert told.get("status") == 400, told
    assert json.loads(told["text"])["error"]


async def test_a_page_of_another_origin_reads_nothing(
    browser: Any, gate: Server, port: int
) -> None:
    page = await page_at(browser, "other.localhost", port)
    headers = bearer(gate)
    asked: list[dict[str, Any]] = [{"headers": headers}, {"method": "POST", "body": "{}"}, {}]
    for path in ("/v1/tools", "/mcp", "/.well-known/oauth-authorization-server"):
        for options in asked:
            answer = await fetched(page, f"{gate.url}{path}", **options)
            assert "Failed to fetch" in answer.get("failed", ""), answer
