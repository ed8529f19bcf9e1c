"""Lists are no calls, but count as calls of who asks for them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import ERAS, LEGACY, MODERN, message_of, request, tool_call
from tests.transports.peers import message, piped

from toolgate.gate.errors import Unavailable
from toolgate.testing import opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

MOST = 3
LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
LIMITED = -32400
TOLD = f"Rate limit exceeded: {MOST} calls a minute. Try again in "


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened_web(tmp_path, limits__calls_per_minute=MOST) as opened:
        yield opened


@pytest.mark.parametrize("outside", [False, True], ids=["counted here", "counted elsewhere"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method", LISTS)
async def test_a_list_past_the_limit_is_refused_in_the_words_for_calls(
    web: Web, method: str, era: str, outside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if outside:
        monkeypatch.setattr(web.kit.app.gate.limits, "_own", None)
    async with web.client() as client, web.client("user") as another:
        for _ in range(MOST):
            assert "result" in message_of(await request(era, method).send(client))
        refused = await request(era, method).send(client, "/mcp")
        assert message_of(refused)["error"]["code"] == LIMITED
        assert message_of(refused)["error"]["message"].startswith(TOLD)
        assert "result" in message_of(await request(era, method).send(another))
    rows = [row for row in await web.kit.audit_rows() if row["tool_name"] == method]
    assert [row["error_type"] for row in rows] == ["rate_limited"]


async def test_calls_and_lists_share_one_count(web: Web) -> None:
    async with web.client() as client:
        for _ in range(MOST):
            assert (await request(MODERN, "tools/list").send(client)).status_code == 200
        called = message_of(await tool_call(MODERN, "list_collections").send(client))["result"]
    assert called["isError"]
    assert TOLD in called["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_a_list_of_tools_past_the_limit_says_when_to_come_again(
    web: Web, era: str
) -> None:
    wire = written(web, request(era, "tools/list"))
    line = Line(web)
    await known(line, wire)
    await line.ask(wire)
    for reply in (await line.ask(wire), await Line(web).ask(wire)):  # a head that is known, or not
        assert reply.status == 429
        assert 1 <= int(reply.headers["retry-after"]) <= 60
        assert TOLD.encode() in reply.body


async def test_what_cannot_be_counted_is_not_listed(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise Unavailable("Calls cannot be counted now, so none is answered.")

    limits = web.kit.app.gate.limits
    monkeypatch.setattr(limits, "_own", None)
    monkeypatch.setattr(limits, "_count", away)
    async with web.client() as client:
        for method in LISTS:
            error = message_of(await request(LEGACY, method).send(client))["error"]
            assert error["code"] == Unavailable.rpc


@pytest.mark.parametrize("path", ["/v1/tools", "/openapi.json"])
async def test_lists_outside_of_mcp_count_too(web: Web, path: str) -> None:
    async with web.client() as client:
        for _ in range(MOST):
            assert (await client.get(path)).status_code == 200
        refused = await client.get(path)
    assert (refused.status_code, refused.json()["error"].startswith(TOLD)) == (429, True)
    assert refused.headers["retry-after"]


@pytest.mark.parametrize("method", LISTS)
async def test_on_stdio_too(tmp_path: Path, method: str) -> None:
    async with (
        opened_kit(tmp_path, limits__calls_per_minute=MOST) as kit,
        piped(kit.app.gate, ADMIN) as peer,
    ):
        await peer.shake_hands()
        for number in range(MOST):
            assert "result" in await peer.ask(message(method, era=LEGACY, id=10 + number))
        told = await peer.ask(message(method, era=LEGACY, id=20))
    assert told["error"]["code"] == LIMITED
    assert told["error"]["message"].startswith(TOLD)
