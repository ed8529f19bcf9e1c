"""MCP messages over 64 KiB: few may be so, all of them count, and no session keeps one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.server.connection import Connection
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import (
    ERAS,
    LEGACY,
    META,
    MODERN,
    Request,
    envelope,
    initialize,
    message_of,
    request,
    tool_call,
)

from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, Output, ToolLimits
from toolgate.transports.asgi import FEW, LARGE
from toolgate.transports.mcp import sdk

pytestmark = pytest.mark.anyio

MOST = 3
INVALID_REQUEST = -32600
MUCH = "x" * LARGE
MANY = {f"k{number}": 1 for number in range(10_000)}
TALKATIVE = envelope() | {f"{META}clientCapabilities": {"experimental": MANY}}


class Text(Input):
    text: str


class Length(Output):
    length: int


async def count(ctx: Context[None], args: Text) -> Length:
    return Length(length=len(args.text))


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    tools = [
        a_tool("quick", count, takes=Text, gives=Length, role=Role.ADMIN),
        a_tool(
            "slow", count, takes=Text, gives=Length, role=Role.ADMIN, limits=ToolLimits(slow=True)
        ),
    ]
    async with opened_web(tmp_path, offer(*tools), limits__calls_per_minute=MOST) as opened:
        yield opened


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of HTTP requests that went to the SDK."""
    seen: list[str] = []
    original = sdk.Sdk.__call__

    async def noticed(self: sdk.Sdk, scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["method"])
        await original(self, scope, receive, send)

    monkeypatch.setattr(sdk.Sdk, "__call__", noticed)
    return seen


def notification(method: str) -> Request:
    asked = request(LEGACY, method)
    return Request({key: asked.body[key] for key in ("jsonrpc", "method", "params")}, asked.headers)


TAKES_NOTHING = {
    "initialize": initialize().with_params(capabilities={"experimental": MANY}),
    "ping": request(LEGACY, "ping").with_params(**MANY),
    "a level": request(LEGACY, "logging/setLevel", {"level": "info", "more": MUCH}),
    "a notification": notification("notifications/initialized").with_params(**MANY),
    "an unknown notification": notification("notifications/nope").with_params(more=MUCH),
    "discovery": request(MODERN, "server/discover").with_params(_meta=TALKATIVE),
    "a list": request(MODERN, "tools/list").with_params(_meta=TALKATIVE),
    "a list of the older era": request(LEGACY, "tools/list", {"cursor": MUCH}),
    "a list that the SDK answers": request(MODERN, "prompts/list").with_params(_meta=TALKATIVE),
    "an unknown method": request(LEGACY, "nope/nope", {"more": MUCH}),
    "an odd method": request(LEGACY, "ping", {"more": MUCH}).saying(method=["tools/call"]),
}


@pytest.mark.parametrize("what", TAKES_NOTHING)
async def test_a_message_that_takes_nothing_large_is_refused_before_the_sdk_reads_it(
    web: Web, handed_over: list[str], what: str
) -> None:
    asked = TAKES_NOTHING[what]
    async with web.client() as client:
        answer = await asked.send(client)
    assert answer.status_code == 413, answer.text
    told = answer.json()
    assert told["id"] == asked.body.get("id")
    assert told["error"]["code"] == INVALID_REQUEST
    assert "over 65536 bytes is a tools/call, prompts/get, " in told["error"]["message"]
    assert handed_over == []


@pytest.mark.parametrize("method", ["initialize", "ping", "notifications/initialized"])
async def test_who_sends_many_of_them_is_told_so_unread(tmp_path: Path, method: str) -> None:
    async with opened_web(tmp_path, limits__refusals_per_minute=MOST) as web, web.client() as http:
        found = [
            (await request(LEGACY, method, {"more": MUCH}).send(http)).status_code
            for _ in range(MOST + 2)
        ]
    assert found == [*[413] * MOST, 429, 429]


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "completion/complete"])
async def test_many_values_are_for_the_arguments_of_a_tool(
    web: Web, handed_over: list[str], method: str
) -> None:
    asked = request(MODERN, method, {"name": "quick", "arguments": {"text": MUCH}})
    async with web.client() as client:
        answer = await asked.with_params(_meta=TALKATIVE).send(client)
    assert answer.status_code == 413, answer.text
    assert f"at most {FEW} values apart from the arguments of a tool" in answer.text
    assert handed_over == []


async def test_a_prompt_is_not_given_many_arguments(web: Web, handed_over: list[str]) -> None:
    async with web.client() as client:
        answer = await request(LEGACY, "prompts/get", {"name": "x", "arguments": MANY}).send(client)
    assert (answer.status_code, handed_over) == (413, [])


@pytest.mark.parametrize("name", ["quick", "slow"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_large_call_counts_once(web: Web, era: str, name: str) -> None:
    async with web.client() as client:
        answers = [
            message_of(await tool_call(era, name, {"text": MUCH}).send(client))["result"]
            for _ in range(MOST)
        ]
        refused = await tool_call(era, name, {"text": MUCH}).send(client)
    assert [one["structuredContent"]["result"]["length"] for one in answers] == [LARGE] * MOST
    assert f"{MOST} calls a minute" in refused.text


UNCALLED = {
    "a call with wrong headers": tool_call(MODERN, "quick", {"text": MUCH}).having(mcp_name="slow"),
    "a call of no tool": request(LEGACY, "tools/call", {"arguments": MANY}),
    "an answer that nobody waits for": Request(
        {"jsonrpc": "2.0", "id": 7, "result": {"text": MUCH}}, request(LEGACY, "ping").headers
    ),
    "a completion of nothing": request(LEGACY, "completion/complete", {"ref": MUCH}),
    "a resource without an address": request(LEGACY, "resources/read", {"more": MUCH}),
}


@pytest.mark.parametrize("outside", [False, True], ids=["counted here", "counted elsewhere"])
@pytest.mark.parametrize("what", UNCALLED)
async def test_a_large_message_counts_even_if_it_becomes_no_call(
    web: Web, what: str, outside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if outside:
        monkeypatch.setattr(web.kit.app.gate.limits, "_own", None)
    async with web.client() as client:
        for _ in range(MOST):
            assert (await UNCALLED[what].send(client)).status_code != 429
        refused = await UNCALLED[what].send(client)
    assert refused.status_code == 429
    assert f"{MOST} calls a minute" in refused.text


# What a session keeps


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """The connections that the SDK makes."""
    made: list[Connection] = []
    original = Connection.__init__

    def noticed(self: Connection, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(Connection, "__init__", noticed)
    return made


async def opened_session(client: httpx2.AsyncClient, **params: Any) -> None:
    answer = await initialize().with_params(**params).send(client)
    assert answer.status_code == 200, answer.text
    assert answer.headers["mcp-session-id"]


async def test_a_session_keeps_known_flags_and_a_short_name(
    web: Web, connections: list[Connection]
) -> None:
    given: dict[str, Any] = {
        "roots": {"listChanged": True, "more": {"a": "b" * 2000}},
        "sampling": {"tools": {"more": [1] * 1000}, "odd": {}},
        "elicitation": {"form": {}, "url": {"x": 1}},
        "experimental": {"a": {"b": [1]}},
        "tasks": {"list": {}},
    }
    client_info = {name: f"{name} " + "\N{GRINNING FACE}" * 2000 for name in ("name", "version")}
    async with web.client() as client:
        await opened_session(
            client,
            capabilities=given,
            clientInfo={**client_info, "icons": [{"src": "https://x.example/" + "i" * 9000}]},
            _meta={"more": [1] * 1000},
        )
    [kept] = [one.client_params for one in connections if one.client_params is not None]
    assert kept.model_dump(by_alias=True, exclude_none=True) == {
        "protocolVersion": LEGACY,
        "capabilities": {
            "roots": {"listChanged": True},
            "sampling": {"tools": {}},
            "elicitation": {"form": {}, "url": {}},
        },
        "clientInfo": {name: text[:200] for name, text in client_info.items()},
    }


@pytest.mark.parametrize(
    "params",
    [
        {"capabilities": {"roots": 5}},
        {"capabilities": {"roots": {"listChanged": "often"}}},
        {"capabilities": {"roots": {}}, "clientInfo": {"name": 5, "version": "1"}},
        {"capabilities": {"roots": {}}, "clientInfo": []},
        {"capabilities": {"roots": {}}, "protocolVersion": {}},
    ],
    ids=["a number", "a word", "a number as name", "a list", "an object"],
)
async def test_what_the_protocol_does_not_allow_opens_no_session(
    web: Web, params: dict[str, Any]
) -> None:
    async with web.client() as client:
        answer = await initialize().with_params(**params).send(client)
    assert message_of(answer)["error"]["code"] == types.INVALID_PARAMS
