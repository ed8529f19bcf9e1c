"""The same call over JSON-RPC, plain HTTP and MCP in both eras: the same answer, the same error."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from jsonschema import Draft7Validator
from tests.packs.network.seed import SEED
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import LEGACY, MODERN, message_of, tool_call

pytestmark = pytest.mark.anyio

WAYS = ["rpc", "http", MODERN, LEGACY]
ERROR = Draft7Validator(SEED["ErrorResponse"]["schema"])


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("web"), packs__enabled=["network"]) as opened:
        yield opened


async def called(client: httpx2.AsyncClient, way: str, tool: str, arguments: Any) -> Any:
    """The result, or the error, of a call."""
    if way == "rpc":
        message = {"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments}
        answer = (await client.post("/rpc", json=message)).json()
        return answer.get("result") or answer["error"]
    if way == "http":
        return (await client.post(f"/v1/tools/{tool}", json=arguments)).json()
    result = message_of(await tool_call(way, tool, arguments).send(client))["result"]
    return json.loads(result["content"][0]["text"])


READ: dict[str, Any] = {"database": "firestore", "path": "agents/agent-001"}
FAILING: dict[str, tuple[str, dict[str, Any], int]] = {
    "absent": ("firebase.read", {**READ, "path": "agents/nobody"}, -32200),
    "malformed": ("firebase.read", {**READ, "path": "a//b"}, -32302),
    "incomplete": ("firebase.write", READ, -32301),
    "no record": ("firebase.write", {**READ, "data": {"name": 5}}, -32300),
    "no collection": ("firebase.write", {**READ, "data": {}, "operation": "push"}, -32302),
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_is_the_same_whichever_way(web: Web, way: str) -> None:
    async with web.client() as client:
        answer = await called(client, way, "firebase.read", READ)
        again = await called(client, "rpc", "firebase.read", READ)
    for one in (answer, again):
        del one["metadata"]["timestamp"]
    assert answer == again
    assert answer["data"]["name"] == "Research Agent"


@pytest.mark.parametrize("way", WAYS)
async def test_a_write_is_read_whichever_way_it_came(web: Web, way: str) -> None:
    path = f"ways/{''.join(filter(str.isalnum, way))}"
    async with web.client() as client:
        given = {"database": "realtime", "path": path, "data": {"way": way}}
        assert (await called(client, way, "firebase.write", given))["success"] is True
        read = await called(client, "rpc", "firebase.read", {"database": "realtime", "path": path})
    assert read["data"] == {"way": way}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FAILING)
async def test_an_error_is_the_same_whichever_way(web: Web, way: str, what: str) -> None:
    tool, arguments, code = FAILING[what]
    async with web.client() as client:
        error = await called(client, way, tool, arguments)
        again = await called(client, "rpc", tool, arguments)
    assert error == again
    assert error["code"] == code
    assert {"field", "value", "reason", "suggestion"} <= error["data"].keys()
    ERROR.validate(error)


@pytest.mark.parametrize("holder", ["user", "worker", "pm"])
async def test_nobody_else_sees_these_tools(web: Web, holder: str) -> None:
    async with web.client(holder) as client:
        error = await called(client, "rpc", "firebase.read", READ)
        listed = (await client.get("/v1/tools")).json()
    assert error["code"] == -32601
    assert "firebase" not in json.dumps(listed)


async def test_a_batch_is_answered_one_by_one(web: Web) -> None:
    def request(method: str, params: Any, **id: int) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params, **id}

    written = {"database": "realtime", "path": "batch", "data": 1}
    async with web.client() as client:
        answers = await client.post(
            "/rpc",
            json=[
                request("firebase.write", written),
                request("firebase.read", {"database": "realtime", "path": "batch"}, id=1),
                request("firebase.read", ["realtime", "batch"], id=2),
                request("firebase.reed", {}, id=3),
                5,
            ],
        )
    first, *failed = answers.json()
    assert (first["id"], first["result"]["data"]) == (1, 1)
    codes = [(one["id"], one["error"]["code"]) for one in failed]
    assert codes == [(2, -32602), (3, -32601), (None, -32600)]


async def test_too_many_calls_are_told_when_to_come_back(tmp_path: Any) -> None:
    limits: dict[str, Any] = {"limits__calls_per_minute": 2, "packs__enabled": ["network"]}
    async with opened_web(tmp_path, **limits) as web, web.client() as client:
        answers = [await called(client, "rpc", "firebase.read", READ) for _ in range(3)]
    error = answers[-1]
    assert (error["code"], error["data"]["name"]) == (-32400, "RATE_LIMITED")
    assert error["data"]["retryAfter"] > 0
    ERROR.validate(error)
