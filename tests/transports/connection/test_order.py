"""What is run is answered, in the order in which it came, whatever comes behind it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.connection.test_known_heads import Door
from tests.transports.lines import BODY_SECONDS, Line, known, written
from tests.transports.mcp_requests import MODERN, tool_call
from tests.transports.test_connection_bytes import BROKEN, in_chunks

from toolgate.gate.principal import Role
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CLASSES = [Connection, LimitedHttpTools, LimitedH11]
NO_REQUEST = [one for one in BROKEN if b"9.9" not in one]
"""h11 knows every version."""
DOOR = Door()
RAN: list[str] = []


async def count(ctx: Any, args: Any) -> Any:
    RAN.append("count")
    return await DOOR.run(ctx, args)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    counted = a_tool("count", count, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("order"), offer(counted)) as opened:
        yield opened


@pytest.fixture(params=CLASSES)
async def line(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    RAN.clear()
    DOOR.close()
    opened = Line(web, connections=request.param)
    yield opened
    await opened.hang_up()


def call(web: Web, **headers: Any) -> bytes:
    return written(web, tool_call(MODERN, "count", {}), **headers)


def broken_body(web: Web) -> bytes:
    """A call whose second chunk is none."""
    wire = in_chunks(call(web))
    return wire[: wire.index(b"\r\n", wire.index(b";a=b\r\n") + 6) + 2] + b"xyz\r\n"


async def statuses(line: Line, number: int) -> list[int]:
    return [(await line.reply()).status for _ in range(number)]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("broken", NO_REQUEST, ids=["TLS", "header", "length"])
async def test_bytes_that_are_no_request_are_refused_after_the_answers_before(
    web: Web, line: Line, number: int, broken: bytes
) -> None:
    line.feed(call(web) * number + broken)
    await DOOR.entered.wait()
    assert not line.pipe.written
    DOOR.open.set()
    assert await statuses(line, number + 1) == [200] * number + [400]
    assert len(RAN) == number
    assert line.pipe.closed


async def test_the_same_where_the_head_is_known(web: Web) -> None:
    line = Line(web)
    DOOR.open.set()
    await known(line, call(web))
    RAN.clear()
    DOOR.close()
    line.feed(call(web))
    line.feed(BROKEN[0])
    await DOOR.entered.wait()
    DOOR.open.set()
    assert await statuses(line, 2) == [200, 400]
    assert (RAN, line.requests, line.pipe.closed) == (["count"], 0, True)
    await line.hang_up()


async def test_a_call_whose_body_cannot_be_read_is_refused_and_not_run(
    web: Web, line: Line
) -> None:
    line.feed(call(web) + broken_body(web))
    await DOOR.entered.wait()
    assert not line.pipe.written
    DOOR.open.set()
    assert await statuses(line, 2) == [200, 400]
    assert line.pipe.closed
    assert RAN == ["count"]


async def test_a_body_that_does_not_come_is_not_refused_in_place_of_an_earlier_answer(
    web: Web, line: Line
) -> None:
    line.feed(call(web) + call(web)[:-1])
    await DOOR.entered.wait()
    line.later(2 * BODY_SECONDS)
    assert not line.pipe.written
    DOOR.open.set()
    assert (await line.reply()).status == 200
    assert RAN == ["count"]


async def test_the_answer_before_is_sent_though_the_server_stops(web: Web, line: Line) -> None:
    line.feed(call(web) + BROKEN[0])
    await DOOR.entered.wait()
    line.server.shutdown()
    assert not line.pipe.closed
    DOOR.open.set()
    assert (await line.reply()).status == 200
    await line.until(lambda: line.pipe.closed)


async def test_a_request_behind_the_last_one_is_not_read(web: Web, line: Line) -> None:
    line.feed(call(web, connection="close") + call(web))
    await DOOR.entered.wait()
    DOOR.open.set()
    reply = await line.reply()
    assert (reply.status, reply.headers["connection"]) == (200, "close")
    await line.until(lambda: line.pipe.closed)
    assert not line.pipe.written
    assert RAN == ["count"]
