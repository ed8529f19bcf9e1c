"""Messages that only the SDK looks at count as calls, and past the limit it does not see them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import LEGACY, MODERN, Request, message_of, request, tool_call

from toolgate.transports.mcp.front import Front

pytestmark = pytest.mark.anyio

MOST = 3
CLIENT = {"name": "x", "version": "1"}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
MESSAGES = {
    "initialize": request(LEGACY, "initialize", HELLO),
    "ping": request(LEGACY, "ping"),
    "level": request(LEGACY, "logging/setLevel", {"level": "info"}),
    "discover": request(MODERN, "server/discover"),
}


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened_web(tmp_path, limits__calls_per_minute=MOST) as opened:
        yield opened


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the SDK was given."""
    seen: list[Any] = []
    hand: Any = vars(Front)["_hand_to_sdk"]

    async def noted(self: Front, scope: Any, *given: Any, **named: Any) -> None:
        seen.append(scope)
        await hand(self, scope, *given, **named)

    monkeypatch.setattr(Front, "_hand_to_sdk", noted)
    return seen


@pytest.mark.parametrize("asked", MESSAGES.values(), ids=MESSAGES)
async def test_past_the_limit_a_message_is_refused_before_the_sdk(
    web: Web, asked: Request, handed_on: list[Any]
) -> None:
    async with web.client() as client, web.client("user") as another:
        for _ in range(MOST):
            assert (await asked.send(client)).status_code == 200
        for _ in range(MOST):
            refused = await asked.send(client)
            assert refused.status_code == 429
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert message_of(refused)["error"]["code"] == -32400
        assert len(handed_on) == MOST
        assert (await asked.send(another)).status_code == 200, "others are not concerned"
    rows = [row for row in await web.kit.audit_rows() if row["error_type"] == "rate_limited"]
    assert [row["tool_name"] for row in rows] == [asked.body["method"]], "one row for many"


async def test_they_share_the_count_of_calls(web: Web) -> None:
    async with web.client() as client:
        for _ in range(MOST):
            assert (await MESSAGES["ping"].send(client)).status_code == 200
        called = message_of(await tool_call(MODERN, "list_collections").send(client))["result"]
    assert called["isError"]


async def test_unknown_methods_past_the_limit_on_refusals_do_not_reach_the_sdk(
    tmp_path: Path, handed_on: list[Any]
) -> None:
    async with (
        opened_web(tmp_path, limits__refusals_per_minute=MOST) as web,
        web.client() as client,
    ):
        answers = [await request(LEGACY, "nope/x").send(client) for _ in range(3 * MOST)]
    codes = [message_of(one)["error"]["code"] for one in answers]
    assert codes[0] == -32601
    assert codes[-1] == -32400
    assert len(handed_on) <= MOST + 1


async def test_a_cancellation_reaches_its_call_whatever_was_sent_before(
    web: Web, handed_on: list[Any]
) -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with web.client() as client:
        for _ in range(MOST + 1):
            await MESSAGES["ping"].send(client)
        answer = await Request(cancelled, MESSAGES["ping"].headers).send(client)
    assert answer.status_code == 202
    assert len(handed_on) == MOST + 1
