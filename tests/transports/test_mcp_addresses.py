"""An MCP client that is given nearly the right address gets on, or is told the right one."""

from typing import Any

import httpx2
import pytest
from tests.transports.conftest import Web

pytestmark = pytest.mark.anyio

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-06-18",
}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_a_slash_at_the_end_makes_no_difference(web: Web, path: str) -> None:
    async with web.client() as client:
        plain = await client.post(path, json=LIST, headers=HEADERS)
        slash = await client.post(f"{path}/", json=LIST, headers=HEADERS)
        wrong = await client.put(f"{path}/", headers=HEADERS)
    assert (slash.status_code, slash.json()) == (plain.status_code, plain.json())
    assert wrong.status_code == 405


@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_both_are_one_resource_for_a_client_that_signs_in(web: Web, path: str) -> None:
    async with web.client(None) as client:
        challenges = [
            (await client.post(one, json=PING)).headers["www-authenticate"]
            for one in (path, f"{path}/")
        ]
    assert challenges[0] == challenges[1]
    assert f'/.well-known/oauth-protected-resource{path}"' in challenges[0]


@pytest.mark.parametrize("who", ["admin", None])
async def test_who_sends_mcp_to_the_base_url_is_told_where_it_is(web: Web, who: Any) -> None:
    async with web.client(who) as client:
        answer: httpx2.Response = await client.post("/", json=PING)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    told = "POST is not possible here. Use GET or HEAD. MCP is at /mcp."
    assert answer.json() == {"error": told}
