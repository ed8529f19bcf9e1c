"""Answers that clients do not read are bounded in bytes, per caller and together."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import BODY_SECONDS, LONG_LIMITS, Line, known, written
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.gate.tool import Output
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.table import ConnectionTable
from toolgate.transports.connection.unread import UnreadAnswers

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

HIGH_WATER = 64 * 1024
TEXT = "x" * 1_000_000
ROOM = 7 * len(TEXT)
"""For two of one caller, and one of another: an answer has its result twice, once as text."""
RUNS: list[str] = []

Connect = Callable[[], Line]


class Large(Output):
    text: str


async def large(ctx: Any, args: Any) -> Large:
    RUNS.append(ctx.principal.id)
    return Large(text=TEXT)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tool = a_tool("large", large, gives=Large, role=Role.USER)
    async with opened_web(tmp_path_factory.mktemp("unread"), offer(tool)) as opened:
        yield opened


@pytest.fixture(params=[Connection, LimitedHttpTools, LimitedH11])
async def connect(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    table = ConnectionTable(LONG_LIMITS.model_copy(update={"unsent_attachment_bytes": ROOM}))
    lines: list[Line] = []

    def connect() -> Line:
        lines.append(Line(web, table=table, connections=request.param))
        return lines[-1]

    RUNS.clear()
    yield connect
    for line in lines:
        await line.hang_up()


def leave_unread(line: Line) -> None:
    """Take nothing: what is written stays in the buffer, as in that of an event loop."""
    write = line.pipe.write

    def keep(data: Any) -> None:
        write(data)
        line.pipe.unsent += len(data)
        if line.pipe.unsent > HIGH_WATER and not line.server.flow.write_paused:
            line.server.pause_writing()

    line.pipe.__dict__["write"] = keep


def read_on(line: Line) -> None:
    del line.pipe.__dict__["write"]
    line.pipe.unsent = 0
    line.server.resume_writing()


def ask(web: Web, holder: str = "admin") -> bytes:
    return written(web, tool_call(MODERN, "large", {}), holder)


async def unread(connect: Connect, wire: bytes, *, is_known: bool = False) -> Line:
    """A connection whose answer has been written, and not read."""
    line = connect()
    if is_known:
        await known(line, wire)
    leave_unread(line)
    line.feed(wire)
    await line.until(lambda: line.server.flow.write_paused)
    return line


def open_ones(lines: list[Line]) -> list[int]:
    return [number for number, line in enumerate(lines) if not line.pipe.gone]


@pytest.mark.parametrize("is_known", [False, True], ids=["new heads", "known heads"])
async def test_who_does_not_read_loses_what_has_waited_longest(
    web: Web, connect: Connect, is_known: bool
) -> None:
    lines = [await unread(connect, ask(web), is_known=is_known) for _ in range(5)]
    assert open_ones(lines) == [3, 4]
    other = await unread(connect, ask(web, "user"), is_known=is_known)
    assert open_ones(lines) == [3, 4], "there is room for others"
    lines.append(await unread(connect, ask(web, "user"), is_known=is_known))
    assert open_ones(lines) == [4, 5], "who has most gives up"
    for line in (*(lines[number] for number in (4, 5)), other):
        read_on(line)
        assert TEXT.encode() in (await line.reply()).body
    assert len(RUNS) == (7 if not is_known else 7 * 3)


async def test_who_reads_or_leaves_holds_nothing(web: Web, connect: Connect) -> None:
    for number in range(9):
        line = await unread(connect, ask(web))
        if number % 2:
            await line.hang_up()
        else:
            read_on(line)
            assert (await line.reply()).status == 200
    lines = [await unread(connect, ask(web)) for _ in range(2)]
    assert open_ones(lines) == [0, 1]


async def test_a_connection_holds_one_answer_that_is_not_read(web: Web, connect: Connect) -> None:
    line = connect()
    assert (await line.ask(ask(web))).status == 200
    RUNS.clear()
    leave_unread(line)
    line.feed(ask(web) * 3)
    await line.until(lambda: line.server.flow.write_paused and line.server._has_request)
    other = connect()
    for _ in range(3):  # it has had its turn as often as the others
        assert (
            await other.ask(written(web, tool_call(MODERN, "list_collections", {})))
        ).status == 200
    assert len(RUNS) == 1
    read_on(line)
    for _ in range(3):
        assert TEXT.encode() in (await line.reply()).body
    assert len(RUNS) == 3


async def test_what_waits_behind_an_unread_answer_is_not_run_for_who_is_cut(
    web: Web, connect: Connect
) -> None:
    line = connect()
    assert (await line.ask(ask(web))).status == 200
    leave_unread(line)
    line.feed(ask(web) * 2)
    await line.until(lambda: line.server.flow.write_paused)
    line.later(0)
    line.later(BODY_SECONDS)
    assert line.pipe.gone
    await line.hang_up()
    assert len(RUNS) == 2


class Client:
    """A connection that only counts."""

    dropped = False

    def drop(self) -> None:
        self.dropped = True


def test_answers_are_shared_out_like_attachments(caplog: pytest.LogCaptureFixture) -> None:
    answers = UnreadAnswers(100, clock=lambda: 1000.0)
    clients = {name: [Client() for _ in range(20)] for name in ("jane", "joe", "")}
    for name, theirs in clients.items():
        for one in theirs:
            answers.hold(one, name or None, 10)
    left = {name: sum(not one.dropped for one in theirs) for name, theirs in clients.items()}
    assert sum(left.values()) <= 10
    assert all(number >= 2 for number in left.values()), left
    assert all(not theirs[-1].dropped for theirs in clients.values()), "the newest stay"
    assert len(caplog.messages) == 1
    assert "limits.unsent_attachment_bytes" in caplog.messages[0]
    for theirs in clients.values():
        for one in theirs:
            answers.release(one)
            answers.release(one)
    large = Client()
    answers.hold(large, "jane", 1000)
    assert not large.dropped, "where nobody has any, one of any size may wait"
    answers.hold(Client(), "joe", 1)
    assert large.dropped
