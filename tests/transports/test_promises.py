"""What the README promises under "Secure by default", seen from outside."""

from pathlib import Path

import pytest
from tests.gate.tools import a_tool, is_stored, offer, shipped_policy, storing
from tests.transports.conftest import opened_web

from toolgate import packs
from toolgate.gate.principal import AgentType, Role, of_agent, of_role
from toolgate.gate.tool import Effect

pytestmark = pytest.mark.anyio


def test_no_built_in_tool_writes_until_it_is_told_so_but_for_admins() -> None:
    policy = shipped_policy()
    callers = [of_role(role, "x") for role in Role] + [of_agent(one, "x") for one in AgentType]
    writing = [
        tool for made in packs.offers() for tool in made.tools if tool.effect is not Effect.READ
    ]
    assert writing
    allowed = [
        (tool.pack.name, Role.ADMIN in who.roles)
        for who in callers
        for tool in writing
        if policy.decide(who, tool).allowed
    ]
    assert set(allowed) <= {("backend", True)}


async def test_a_switched_off_tool_is_listed_nowhere_and_unknown_everywhere(tmp_path: Path) -> None:
    name = "list_collections"
    async with opened_web(tmp_path, policy__disabled=name) as web, web.client("admin") as client:
        listed = [tool["name"] for tool in (await client.get("/v1/tools")).json()["tools"]]
        assert name not in listed
        assert "describe_collection" in listed
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert f"/v1/tools/{name}" not in paths
        assert "/v1/tools/describe_collection" in paths
        refused = await client.post(f"/v1/tools/{name}", json={})
        unknown = await client.post("/v1/tools/list_collectionx", json={})
        assert refused.status_code == unknown.status_code == 404
        assert refused.text == unknown.text.replace("list_collectionx", name)
        rpc = await client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": name})
        other = await client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "nothing"})
        assert rpc.json()["error"]["code"] == other.json()["error"]["code"]


async def test_read_only_stops_writes_of_tools_of_ones_own_too(tmp_path: Path) -> None:
    tool = a_tool("artifact.put", storing(), effect=Effect.WRITE)
    opened = opened_web(tmp_path, plugins=offer(tool), policy__read_only=True)
    async with opened as web, web.client("admin") as client:
        assert (await client.post("/v1/tools/artifact.put", json={})).status_code == 403
        assert not await is_stored(web.kit)
