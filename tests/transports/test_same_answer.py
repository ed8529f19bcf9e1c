"""Every tool that ships answers the same on each transport: its example, and a refusal."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import ERAS, message_of, tool_call

from toolgate import packs
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.tool import Effect

pytestmark = pytest.mark.anyio

TOOLS = [tool for offer in packs.offers(packs.SHIPPED) for tool in offer.tools]
READS = [tool for tool in TOOLS if tool.effect is Effect.READ]
MADE_ANEW = {"generate_uuid", "health_check", "get_payment_portal"}
"""Tools that answer differently each time."""
OF_USERS = {"get_user"}
"""Tools that answer for the user who calls; the admin key is no user's."""
VOLATILE = {"cursor", "next_cursor", "timestamp", "observed_at", "content_bytes_base64"}
"""Fields made anew for each answer; and content, which MCP hands over as a resource."""


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("same")
    async with opened_web(folder, packs__enabled=packs.SHIPPED) as opened:
        yield opened


def steady(value: Any) -> Any:
    """An answer without what is made anew for each."""
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if name not in VOLATILE}
    return [steady(one) for one in value] if isinstance(value, list) else value


async def answers(
    web: Web, tool: AnyTool, arguments: dict[str, Any], holder: str = "admin"
) -> list[tuple[bool, Any]]:
    """Whether it failed, and the body: over HTTP, JSON-RPC, and MCP in both eras."""
    async with web.client(holder) as client:
        plain = await client.post(f"/v1/tools/{tool.name}", json=arguments)
        message = {"jsonrpc": "2.0", "id": 1, "method": tool.name, "params": arguments}
        remote = (await client.post("/rpc", json=message)).json()
        found = [(plain.is_error, plain.json())]
        found.append(("error" in remote, remote.get("result", remote.get("error"))))
        for era in ERAS:
            called = message_of(await tool_call(era, tool.name, arguments).send(client))["result"]
            text = called["content"][0]["text"]
            assert called["isError"] or called["structuredContent"] == json.loads(text)
            in_words = called["isError"] and tool.pack.name == "backend"
            found.append((called["isError"], {"error": text} if in_words else json.loads(text)))
    return found


@pytest.mark.parametrize("tool", READS, ids=[tool.name for tool in READS])
async def test_an_example_is_answered_alike(web: Web, tool: AnyTool) -> None:
    holder = "user" if tool.name in OF_USERS else "admin"
    found = await answers(web, tool, dict(tool.example), holder)
    assert [failed for failed, _ in found] == [False] * 4, found
    if tool.name in MADE_ANEW:
        assert len({tuple(body) for _, body in found}) == 1
    else:
        first, *others = (steady(body) for _, body in found)
        assert others == [first] * 3


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
async def test_an_unknown_argument_is_refused_alike(web: Web, tool: AnyTool) -> None:
    found = await answers(web, tool, {**tool.example, "nonsense_argument": 1})
    assert [failed for failed, _ in found] == [True] * 4, found
    assert all("nonsense_argument" in json.dumps(body) for _, body in found), found
    (_, plain), (_, remote), *over_mcp = found
    assert [body for _, body in over_mcp] == [plain] * 2
    assert remote["message"] in json.dumps(plain), (remote, plain)
