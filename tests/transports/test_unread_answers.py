"""A client that does not read its answers keeps no place, and no file, for long."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.connection.test_known_heads import Door
from tests.transports.lines import (
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    LONG_LIMITS,
    Line,
    written,
)
from tests.transports.mcp_requests import LEGACY, MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.table import ConnectionTable

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CLASSES = [Connection, LimitedHttpTools, LimitedH11]
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
CAPACITY = 16
DOOR = Door()

Connect = Callable[..., Line]


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("echo", role=Role.PUBLIC), a_tool("held", DOOR.run, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("unread"), offer(*tools)) as opened:
        yield opened


@pytest.fixture(params=CLASSES)
async def connect(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """New connections to a server that may have few."""
    table = ConnectionTable(LONG_LIMITS.model_copy(update={"connections": CAPACITY}))
    lines: list[Line] = []

    def connect(peer: str = "192.0.2.1") -> Line:
        lines.append(Line(web, peer=peer, table=table, connections=request.param))
        return lines[-1]

    yield connect
    for line in lines:
        await line.hang_up()


def echo(web: Web, **headers: Any) -> bytes:
    return written(web, tool_call(MODERN, "echo", {}), **headers)


async def fill_without_reading(connect: Connect) -> list[Line]:
    """All places are taken by strangers whose requests are many, and their answers unread."""
    lines = [connect(f"192.0.2.{number}") for number in range(CAPACITY)]
    for line in lines:
        line.leave_unread()
        line.feed(HEALTH * 10)
    await lines[-1].until(lambda: lines[-1].requests)
    return lines


async def test_strangers_who_do_not_read_keep_nobody_out(web: Web, connect: Connect) -> None:
    lines = await fill_without_reading(connect)
    for number in range(CAPACITY):
        newcomer = connect("198.51.100.7")
        assert (await newcomer.ask(echo(web))).status == 200
        assert lines[number].pipe.gone, "the oldest goes first"


async def test_one_address_that_does_not_read_keeps_its_share_at_most(connect: Connect) -> None:
    lines = [connect() for _ in range(CAPACITY // 2)]
    for line in lines:
        line.leave_unread()
        line.feed(HEALTH * 10)
    await lines[-1].until(lambda: lines[-1].requests)
    assert (await connect().ask(HEALTH)).status == 200
    assert [line.pipe.gone for line in lines] == [True] + [False] * (CAPACITY // 2 - 1)


async def test_a_stranger_whose_requests_queue_up_is_not_waiting_for_an_answer(
    web: Web, connect: Connect
) -> None:
    line = connect("192.0.2.99")
    line.feed(HEALTH)
    assert line.server.is_answering
    line.feed(HEALTH * 3)
    assert not line.server.is_answering
    for _ in range(4):
        assert (await line.reply()).status == 200


async def test_of_many_requests_that_come_at_once_few_are_parsed_before_their_turn(
    connect: Connect,
) -> None:
    line = connect()
    line.feed(HEALTH * 5000)
    for _ in range(200):
        assert not line.pipe.reading
        assert len(getattr(line.server, "pipeline", ())) < 120
        assert (await line.reply()).status == 200
    assert not line.pipe.reading
    await line.hang_up()


@pytest.mark.parametrize("stranger", [True, False])
async def test_whoever_takes_nothing_of_an_answer_is_cut(
    web: Web, connect: Connect, stranger: bool
) -> None:
    line = connect()
    if not stranger:
        await line.ask(echo(web))
    line.leave_unread()
    line.feed(HEALTH if stranger else echo(web))
    await line.until(lambda: line.server.cycle)
    line.later(0)
    line.later(BODY_SECONDS - 500)
    assert not line.pipe.closed
    line.later(BODY_SECONDS)
    assert line.pipe.gone


async def test_whoever_takes_an_answer_slowly_is_not_cut(web: Web, connect: Connect) -> None:
    line = connect()
    await line.ask(echo(web))
    line.leave_unread(3)
    line.feed(echo(web))
    for times in range(3):
        line.pipe.unsent = 3 - times
        line.later(times * (BODY_SECONDS - 500))
        assert not line.pipe.closed
    line.later(3 * BODY_SECONDS)
    assert line.pipe.gone


async def test_what_is_written_anew_is_not_taken(web: Web, connect: Connect) -> None:
    line = connect()
    await line.ask(echo(web))
    line.feed(echo(web)[:20])
    for times in range(5):
        line.pipe.unsent += 1000
        line.later(times * BODY_SECONDS / 4)
    assert line.pipe.gone


async def test_a_closed_connection_is_not_kept_for_a_client_that_does_not_read(
    web: Web, connect: Connect
) -> None:
    line = connect()
    line.pipe.unsent = 1000
    line.feed(echo(web, connection="close"))
    await line.until(lambda: line.pipe.closed)
    line.later(0)
    line.later(BODY_SECONDS - 500)
    assert not line.pipe.gone, "what it has not read yet may be much"
    line.later(BODY_SECONDS)
    assert line.pipe.gone


async def test_a_client_with_unread_answers_that_goes_for_others_leaves_its_file(
    web: Web, connect: Connect
) -> None:
    lines = [connect(f"192.0.2.{number}") for number in range(CAPACITY)]
    for line in lines:
        await line.ask(echo(web))
        await line.until(lambda line=line: line.server.is_idle)
    lines[0].pipe.unsent = 1000
    connect("192.0.2.99")
    assert [line.pipe.gone for line in lines[:2]] == [True, False]


async def test_an_address_whose_share_is_being_answered_is_told_that_there_is_no_room(
    web: Web, connect: Connect
) -> None:
    lines = [connect() for _ in range(CAPACITY // 2)]
    for line in lines:
        line.feed(HEALTH)  # not answered before this test waits for something
        assert line.server.is_answering
    newcomer = connect()
    assert newcomer.pipe.written.startswith(b"HTTP/1.1 503 ")
    assert newcomer.pipe.closed
    assert (await connect("198.51.100.7").ask(HEALTH)).status == 200, "others have room"
    for line in lines:
        assert (await line.reply()).status == 200


async def test_clients_with_credentials_do_not_count_for_the_share_of_their_address(
    web: Web, connect: Connect
) -> None:
    DOOR.close()
    lines = [connect() for _ in range(CAPACITY // 2)]
    for line in lines:
        line.feed(written(web, tool_call(MODERN, "held", {})))
        await line.until(lambda line=line: line.server.has_credentials)
    assert (await connect().ask(HEALTH)).status == 200
    DOOR.open.set()
    for line in lines:
        assert (await line.reply()).status == 200


@pytest.mark.parametrize("connections", [Connection, LimitedHttpTools])
async def test_an_answer_does_not_change_the_deadline_of_the_request_behind_it(
    web: Web, connections: type[Any]
) -> None:
    line = Line(web, connections=connections)
    DOOR.close()
    line.feed(written(web, tool_call(LEGACY, "held", {})))
    await DOOR.entered.wait()
    line.feed(b"GET / HTTP/1.1\r\n")
    DOOR.open.set()
    assert b"through" in (await line.reply()).body
    assert HEAD_SECONDS > IDLE_SECONDS
    line.later(HEAD_SECONDS - 500)
    assert not line.pipe.written
    line.later(HEAD_SECONDS)
    assert (await line.reply()).status == 408
    await line.hang_up()
