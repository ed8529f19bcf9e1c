"""A server that stops answers a request that is on its way, says that it closes, and closes."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.patience import PATIENT
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.transports.connection import limited
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
POST = b"POST /token HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n"


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tool = a_tool("echo", role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("stop"), offer(tool)) as opened:
        yield opened


@pytest.fixture(params=[Connection, LimitedHttpTools, LimitedH11])
async def line(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    """A connection that has been used."""
    line = Line(web, connections=request.param)
    assert (await line.ask(HEALTH)).status == 200
    yield line
    await line.hang_up()


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment for a request that is on its way does not end in this test."""
    monkeypatch.setattr(limited, "STOP_SECONDS", 10 * PATIENT)


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> None:
    """That moment is over at once."""
    monkeypatch.setattr(limited, "STOP_SECONDS", 0.0)


async def last(line: Line) -> tuple[int, str | None]:
    """The status of the last answer, and what it says of the connection, which is closed."""
    told = await line.reply()
    await line.until(lambda: line.pipe.closed)
    assert not line.pipe.written
    return told.status, told.headers.get("connection")


@pytest.mark.usefixtures("long")
async def test_a_request_on_its_way_is_answered_and_is_the_last(line: Line) -> None:
    line.server.shutdown()
    assert not line.pipe.closed
    line.feed(HEALTH)
    assert await last(line) == (200, "close")


@pytest.mark.usefixtures("long")
async def test_a_request_in_pieces_is_answered_and_is_the_last(line: Line) -> None:
    line.server.shutdown()
    line.feed(*(bytes([one]) for one in POST), b"x", b"y")
    assert await last(line) == (400, "close")


@pytest.mark.usefixtures("long")
async def test_a_head_that_had_begun_is_answered_and_is_the_last(line: Line) -> None:
    line.feed(HEALTH[:20])
    line.server.shutdown()
    line.feed(HEALTH[20:])
    assert await last(line) == (200, "close")


@pytest.mark.usefixtures("long")
async def test_a_known_request_on_its_way_is_answered_and_is_the_last(web: Web) -> None:
    line, asked = Line(web), written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    line.server.shutdown()
    line.feed(asked)
    assert await last(line) == (200, "close")
    assert line.requests == 0


@pytest.mark.usefixtures("over")
async def test_a_connection_that_stays_unused_is_closed(line: Line) -> None:
    line.server.shutdown()
    assert not line.pipe.closed
    await line.until(lambda: line.pipe.closed)
    assert not line.pipe.written


@pytest.mark.usefixtures("over")
async def test_a_new_connection_that_stays_unused_is_closed(web: Web, line: Line) -> None:
    fresh = Line(web, connections=line.connections)
    fresh.server.shutdown()
    await fresh.until(lambda: fresh.pipe.closed)


@pytest.mark.usefixtures("over")
async def test_a_head_that_does_not_end_is_told(line: Line) -> None:
    line.server.shutdown()
    line.feed(HEALTH[:20])
    told = await line.reply()
    assert (told.status, told.headers["connection"]) == (503, "close")
    assert json.loads(told.body) == {"error": "The server is stopping. Try again."}
    line.later(1)
    assert line.pipe.closed


@pytest.mark.usefixtures("over")
async def test_a_body_that_has_begun_is_waited_for(line: Line) -> None:
    line.server.shutdown()
    line.feed(POST, b"x")
    ended: list[Any] = []
    line.server.loop.call_later(0, ended.append, None)
    await line.until(lambda: ended)
    assert not line.pipe.closed
    line.feed(b"y")
    assert await last(line) == (400, "close")
