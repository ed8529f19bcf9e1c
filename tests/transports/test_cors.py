"""Pages of allowed origins may call and read every answer; others get no header that lets them."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import tool_call

pytestmark = pytest.mark.anyio

ORIGIN = "http://localhost:5173"
FOREIGN = "https://evil.example"
ALLOW_ORIGIN = "access-control-allow-origin"
PATHS = ["/mcp", "/v1/tools/list_collections", "/rpc", "/api/projects", "/token", "/register",
         "/.well-known/oauth-authorization-server", "/nothing/here", "/healthz"]  # fmt: skip
SENT = {
    "authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name",
    "mcp-session-id", "last-event-id", "x-dry-run", "x-request-id", "idempotency-key",
    "x-project-id", "x-project-slug",
}  # fmt: skip


def words(answer: httpx2.Response, name: str) -> set[str]:
    return {word.strip().lower() for word in answer.headers[name].split(",")}


async def preflight(web: Web, path: str, origin: str = ORIGIN, **headers: str) -> httpx2.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", **headers}
    async with web.client(None) as client:
        return await client.request("OPTIONS", path, headers=asked)


@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_needs_no_credentials_and_is_the_same_for_every_path(
    web: Web, path: str
) -> None:
    answer = await preflight(web, path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers[ALLOW_ORIGIN] == ORIGIN
    assert answer.headers["vary"] == "Origin"
    assert words(answer, "access-control-allow-methods") >= {"get", "post", "delete"}
    assert words(answer, "access-control-allow-headers") == SENT
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "access-control-allow-credentials" not in answer.headers


async def test_a_header_that_mirrors_an_argument_may_be_sent(web: Web) -> None:
    asked = {"Access-Control-Request-Headers": "authorization,mcp-param-region,x-evil,mcp-param-\n"}
    answer = await preflight(web, "/mcp", **asked)
    assert words(answer, "access-control-allow-headers") == SENT | {"mcp-param-region"}


@pytest.mark.parametrize("origin", [FOREIGN, "null", "http://localhost.evil.example", "*", ""])
async def test_a_preflight_of_a_foreign_origin_is_refused(web: Web, origin: str) -> None:
    answer = await preflight(web, "/mcp", origin)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_options_without_a_question_needs_credentials(web: Web) -> None:
    async with web.client(None, Origin=ORIGIN) as client:
        assert (await client.request("OPTIONS", "/mcp")).status_code == 401


ANSWERS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "a call": ("POST", "/v1/tools/list_collections", {}, 200),
    "an MCP call": ("POST", "/mcp", {}, 200),
    "an unknown path": ("GET", "/nothing/here", {}, 404),
    "a wrong method": ("GET", "/v1/tools/list_collections", {}, 405),
    "a long body": ("POST", "/v1/tools/list_collections", {"content": b" " * 5000}, 413),
    "no credentials": ("POST", "/v1/tools/list_collections", {"key": None}, 401),
    "no credentials for MCP": ("POST", "/mcp", {"key": None}, 401),
    "wrong credentials": ("POST", "/mcp", {"key": "Bearer wrong"}, 401),
    "metadata": ("GET", "/.well-known/oauth-authorization-server", {"key": None}, 200),
    "a bad registration": ("POST", "/register", {"key": None, "json": {}}, 400),
    "a bad token request": ("POST", "/token", {"key": None, "data": {"grant_type": "x"}}, 400),
    "readiness": ("GET", "/readyz", {"key": None}, 200),
}


@pytest.fixture(scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("cors")
    async with opened_web(folder, limits__body_bytes=4096) as opened:
        yield opened


@pytest.mark.parametrize("what", ANSWERS)
async def test_a_page_of_an_allowed_origin_can_read_every_answer(small: Web, what: str) -> None:
    method, path, given, status = ANSWERS[what]
    headers = {"Origin": ORIGIN}
    if (key := given.get("key", f"Bearer {small.keys['admin']}")) is not None:
        headers["Authorization"] = key
    body = {name: value for name, value in given.items() if name != "key"}
    if what == "an MCP call":
        asked = tool_call("2026-07-28", "list_collections", {})
        headers |= asked.headers
        body = {"json": asked.body}
    async with small.client(None) as client:
        for _ in range(3):  # the second time a head would be known
            answer = await client.request(method, path, headers=headers, **body)
            assert answer.status_code == status, answer.text
            assert answer.headers.get_list(ALLOW_ORIGIN) == [ORIGIN]
            assert answer.headers.get_list("vary") == ["Origin"]
            exposed = words(answer, "access-control-expose-headers")
            assert exposed == {
                "www-authenticate",
                "mcp-session-id",
                "x-dry-run-changes",
                "x-request-id",
                "retry-after",
            }
            assert "access-control-allow-credentials" not in answer.headers


async def test_too_many_calls_are_told_to_a_page_too(tmp_path: Path) -> None:
    async with (
        opened_web(tmp_path, limits__calls_per_minute=1) as web,
        web.client(Origin=ORIGIN) as client,
    ):
        await client.post("/v1/tools/list_collections")
        answer = await client.post("/v1/tools/list_collections")
    assert answer.status_code == 429
    assert answer.headers[ALLOW_ORIGIN] == ORIGIN


@pytest.mark.parametrize("origin", [FOREIGN, "null"])
async def test_a_foreign_page_can_read_nothing(web: Web, origin: str) -> None:
    async with web.client(Origin=origin) as client:
        for path in PATHS:
            answer = await client.get(path)
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_caller_that_is_no_browser_gets_no_such_header(web: Web) -> None:
    async with web.client() as client:
        answer = await client.post("/v1/tools/list_collections")
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_only_the_configured_origin_may_read(tmp_path: Path) -> None:
    settings = {
        "server__allowed_hosts": ("gate.example",),
        "server__allowed_origins": ("https://app.example",),
    }
    async with opened_web(tmp_path, **settings) as web, web.client(host="gate.example") as client:
        for origin in ("https://app.example", "https://gate.example"):
            answer = await client.get("/v1/tools", headers={"Origin": origin})
            assert (answer.status_code, answer.headers[ALLOW_ORIGIN]) == (200, origin)
        answer = await client.get("/v1/tools", headers={"Origin": "http://localhost"})
    assert answer.status_code == 403
    assert ALLOW_ORIGIN not in answer.headers
