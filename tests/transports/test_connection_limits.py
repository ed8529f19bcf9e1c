"""However long a head is, and however little of it comes, a stranger costs little."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.connection.test_known_heads import Door
from tests.transports.lines import BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS, Line, known, written
from tests.transports.mcp_requests import LEGACY, MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.sections import LimitSettings
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.limited import KEEP_ALIVE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CLASSES = [Connection, LimitedHttpTools, LimitedH11]
LIMITS = LimitSettings()
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
CHUNKED = b"POST /token HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
POST = b"POST /token HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\n"
DOOR = Door()


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("echo", role=Role.PUBLIC), a_tool("held", DOOR.run, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("limits"), offer(*tools)) as opened:
        yield opened


@pytest.fixture(params=CLASSES)
async def line(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    line = Line(web, connections=request.param)
    yield line
    await line.hang_up()


@pytest.fixture
async def knowing(web: Web) -> AsyncIterator[Line]:
    line = Line(web)
    yield line
    await line.hang_up()


def large(web: Web, size: int) -> bytes:
    """The head of a call whose body is too large."""
    return (
        b"POST /v1/tools/echo HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %b\r\n"
        b"content-length: %d\r\n\r\n" % (web.keys["user"].encode(), size)
    )


async def answer(line: Line) -> tuple[int, str, str | None]:
    """Status, what is said, and what becomes of the connection."""
    told = await line.reply()
    body = json.loads(told.body)
    return told.status, body.get("error"), told.headers.get("connection")


def refused(line: Line, piece: bytes = b"") -> None:
    """Nothing more is read, and the connection ends soon."""
    before = len(line.pipe.written)
    line.feed(piece, HEALTH + b"\r\n")
    assert len(line.pipe.written) == before
    line.later(60)
    assert line.pipe.closed


LONG = "The request line and headers are over the limit (setting limits.head_bytes)."
MANY = "The request line and headers are over the limit (setting limits.head_lines)."
LATE = "The request did not arrive in time (setting limits.{})."


def head_of(size: int) -> bytes:
    return HEALTH + b"x: " + b"y" * (size - len(HEALTH) - 7) + b"\r\n\r\n"


@pytest.mark.parametrize("piece", [1000, 65_535, 1 << 20])
async def test_a_head_may_be_as_long_as_the_limit_and_no_longer(line: Line, piece: int) -> None:
    whole = head_of(LIMITS.head_bytes)
    line.feed(*(whole[at : at + piece] for at in range(0, len(whole), piece)))
    assert (await line.reply()).status == 200
    longer = head_of(LIMITS.head_bytes + 1)
    line.feed(*(longer[at : at + piece] for at in range(0, len(longer), piece)))
    assert await answer(line) == (431, LONG, "close")
    assert line.pipe.ended
    refused(line)


@pytest.mark.parametrize(
    "start", [HEALTH + b"x: ", HEALTH + b"x", b"GET /", b"GET /healthz?x="], ids=range(4)
)
async def test_a_line_without_an_end_is_refused_at_the_limit(line: Line, start: bytes) -> None:
    line.feed(start)
    fed = len(start)
    while not line.pipe.written and fed < 1 << 20:
        line.feed(b"y" * 1000)
        fed += 1000
    assert (await answer(line))[0] == 431
    assert fed <= LIMITS.head_bytes + 1000
    refused(line)


async def test_a_head_may_have_as_many_lines_as_the_limit_and_no_more(line: Line) -> None:
    lines = [b"x-%d: y\r\n" % number for number in range(LIMITS.head_lines)]
    line.feed(HEALTH + b"".join(lines[1:]) + b"\r\n")
    assert (await line.reply()).status == 200
    line.feed(HEALTH + b"".join(lines) + b"\r\n")
    assert await answer(line) == (431, MANY, "close")


@pytest.mark.parametrize("connections", [Connection, LimitedHttpTools])
async def test_lines_are_counted_before_the_head_is_complete(
    web: Web, connections: type[Any]
) -> None:
    line = Line(web, connections=connections)
    line.feed(HEALTH + b"a:b\r\n" * (LIMITS.head_lines + 1))
    assert await answer(line) == (431, MANY, "close")
    refused(line, b"a:b\r\n")


async def test_many_short_heads_are_not_one_long_one(line: Line) -> None:
    for _ in range(3):
        line.feed((HEALTH + b"\r\n") * 1)
        assert (await line.reply()).status == 200
    size = len(HEALTH) + 2
    line.feed((HEALTH + b"\r\n") * (2 * LIMITS.head_bytes // size))
    for _ in range(2 * LIMITS.head_bytes // size):
        assert (await line.reply()).status == 200


@pytest.mark.parametrize(
    ("start", "more"),
    [(b"1;", b"y" * 1000), (b"1\r\nx\r\n0\r\n", b"a:b\r\n" * 200), (b"0\r\nx: ", b"y" * 1000)],
    ids=["chunk extension", "trailers", "trailer"],
)
async def test_what_stands_between_the_parts_of_a_body_is_limited_too(
    line: Line, start: bytes, more: bytes
) -> None:
    line.feed(CHUNKED + start)
    fed = 0
    while not line.pipe.closed and not line.pipe.ended and fed < 1 << 20:
        line.feed(more)
        fed += len(more)
    assert fed <= LIMITS.head_bytes + len(more)
    assert line.pipe.written[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400")


async def test_a_body_in_many_small_chunks_is_read(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}), content_length=None)
    head, _, body = asked.partition(b"\r\n\r\n")
    line.feed(head + b"\r\ntransfer-encoding: chunked\r\n\r\n")
    for byte in body:
        line.feed(b"1;extension=%b\r\n%c\r\n" % (b"z" * 1000, byte))
    line.feed(b"0\r\nauthorization: Bearer nonsense\r\n\r\n")
    assert (await line.reply()).status == 200


async def test_a_trailer_is_no_header(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}), authorization=None)
    head, _, body = asked.partition(b"\r\n\r\n")
    head = head.replace(b"content-length", b"transfer-encoding: chunked\r\nx-length")
    key = web.keys["admin"].encode()
    chunk = b"%x\r\n%b\r\n" % (len(body), body)
    line.feed(head + b"\r\n\r\n" + chunk + b"0\r\nauthorization: Bearer %b\r\n\r\n" % key)
    assert (await line.reply()).status == 401


async def test_a_long_head_behind_a_call_lets_the_call_end(web: Web, line: Line) -> None:
    DOOR.close()
    line.feed(written(web, tool_call(LEGACY, "held", {})))
    await DOOR.entered.wait()
    if isinstance(line.server, LimitedH11):
        line.feed(b"GET / HTTP/1.1\r\nx: ")  # h11 looks at it only when the call is answered
    else:
        line.feed(head_of(LIMITS.head_bytes + 1))
    line.later(10 * BODY_SECONDS)
    assert not line.pipe.closed
    DOOR.open.set()
    await line.until(lambda: b"through" in line.pipe.written)
    assert line.pipe.written.startswith(b"HTTP/1.1 200")
    assert b"431" not in line.pipe.written


# Deadlines


async def test_a_connection_without_a_request_is_closed(line: Line) -> None:
    line.later(HEAD_SECONDS - 500)
    assert not line.pipe.closed
    line.later(HEAD_SECONDS)
    assert line.pipe.closed
    assert not line.pipe.written


@pytest.mark.parametrize("start", [b"G", b"GET / HTTP/1.1\r\n", HEALTH, HEALTH + b"\r"])
async def test_half_a_head_is_waited_for_and_then_refused(line: Line, start: bytes) -> None:
    line.feed(start)
    line.later(HEAD_SECONDS - 500)
    assert not line.pipe.written
    line.later(HEAD_SECONDS)
    assert await answer(line) == (408, LATE.format("head_seconds"), "close")
    refused(line)


@pytest.mark.parametrize("start", [POST, POST + b"123456789", CHUNKED, CHUNKED + b"5\r\nabc"])
async def test_half_a_body_is_waited_for_and_then_refused(line: Line, start: bytes) -> None:
    line.feed(start)
    for _ in range(20):
        await asyncio.sleep(0)
    line.later(BODY_SECONDS - 500)
    assert not line.pipe.written
    line.later(BODY_SECONDS)
    assert await answer(line) == (408, LATE.format("body_seconds"), "close")
    refused(line)


async def test_half_the_body_of_a_known_head_is_refused_alike(web: Web, knowing: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(knowing, asked)
    knowing.feed(asked[:-2], asked[-2:-1])
    assert knowing.requests == 0
    knowing.later(BODY_SECONDS - 500)
    assert not knowing.pipe.written
    knowing.later(BODY_SECONDS)
    assert await answer(knowing) == (408, LATE.format("body_seconds"), "close")
    refused(knowing, asked[-1:])


async def test_the_body_of_a_stranger_is_not_held(web: Web, knowing: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(knowing, asked)
    other = written(web, tool_call(MODERN, "echo", {}), authorization="Bearer wrong")
    knowing.feed(other[:-1])
    assert (await knowing.reply()).status == 401, "from the head alone"
    assert knowing.requests == 1
    knowing.feed(other[-1:])
    assert (await knowing.ask(asked)).status == 200, "the connection is still good"


async def test_what_a_stranger_sends_after_its_answer_is_thrown_away_and_not_for_long(
    web: Web, line: Line
) -> None:
    line.feed(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999\r\n\r\n")
    assert (await line.reply()).status == 401
    block = b"y" * (1 << 20)
    for _ in range(LIMITS.body_bytes >> 20):
        line.feed(block)
        assert not line.pipe.closed
        assert len(line.server.cycle.body) == 0
    line.feed(block)
    assert line.pipe.closed


async def test_a_caller_whose_body_is_too_large_may_send_all_of_it_and_then_read_why(
    web: Web, line: Line
) -> None:
    size = 3 * LIMITS.body_bytes
    line.feed(large(web, size))
    told = await line.reply()
    assert (told.status, "over the limit" in json.loads(told.body)["error"]["message"]) == (
        413,
        True,
    )
    for _ in range(size >> 20):
        line.feed(b"y" * (1 << 20))
    line.later(KEEP_ALIVE_SECONDS - 3)
    assert not line.pipe.closed
    assert len(line.server.cycle.body) == 0
    if not isinstance(line.server, LimitedH11):
        assert (await line.ask(written(web, tool_call(MODERN, "echo", {})))).status == 200


async def test_who_wants_no_more_than_one_answer_may_send_all_before_it_reads_it(
    web: Web, knowing: Line
) -> None:
    size = LIMITS.body_bytes + 10
    knowing.feed(large(web, size).replace(b"\r\nhost", b"\r\nconnection: close\r\nhost"))
    assert (await knowing.reply()).status == 413
    assert (knowing.pipe.ended, knowing.pipe.closed) == (True, False)
    knowing.feed(b"y" * (size - 1))
    assert not knowing.pipe.closed
    knowing.feed(b"y" + HEALTH)
    assert knowing.pipe.closed
    assert not knowing.pipe.written


async def test_what_is_thrown_away_for_a_caller_is_bounded_too(web: Web, line: Line) -> None:
    line.feed(large(web, 99 * LIMITS.body_bytes))
    assert (await line.reply()).status == 413
    for _ in range(4 * LIMITS.body_bytes >> 20):
        line.feed(b"y" * (1 << 20))
        assert not line.pipe.closed
    line.later(BODY_SECONDS - 500)
    assert not line.pipe.closed, "a large body takes its time"
    line.feed(b"y")
    assert line.pipe.closed


async def test_a_stranger_that_sends_its_body_slowly_is_closed(line: Line) -> None:
    line.feed(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n")
    assert (await line.reply()).status == 401
    line.later(IDLE_SECONDS - 500)
    assert not line.pipe.closed
    line.later(IDLE_SECONDS)
    assert line.pipe.closed
    assert not line.pipe.written


async def test_a_connection_in_use_is_kept_and_an_idle_one_is_not(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    for _ in range(3):
        await line.ask(asked)
        line.later(IDLE_SECONDS - 500)
        assert not line.pipe.closed
    line.later(IDLE_SECONDS)
    assert line.pipe.closed
    assert not line.pipe.written


@pytest.mark.parametrize("connections", CLASSES)
async def test_who_has_credentials_closes_an_idle_connection_first(
    web: Web, connections: type[Any]
) -> None:
    call = written(web, tool_call(MODERN, "echo", {}))
    for wire, seconds in ((call, KEEP_ALIVE_SECONDS), (HEALTH + b"\r\n", 5)):
        line = Line(web, connections=connections, idle_seconds=5)
        for _ in range(3):  # the third time, the head is known
            await line.ask(wire)
            await line.until(lambda: not line.server.tasks)  # noqa: B023 - called at once
        line.later(seconds - 3)
        assert not line.pipe.closed
        line.later(seconds)
        assert line.pipe.closed
        await line.hang_up()


async def test_a_call_that_runs_is_not_cut(web: Web, line: Line) -> None:
    held = written(web, tool_call(MODERN, "held", {}))
    for _ in range(3):  # the last one has a known head
        DOOR.close()
        line.feed(held)
        await DOOR.entered.wait()
        line.later(10 * BODY_SECONDS)
        assert not line.pipe.closed
        DOOR.open.set()
        assert b"through" in (await line.reply()).body
        await line.until(lambda: not line.server.tasks)


async def test_a_half_request_on_a_connection_in_use_has_a_deadline_of_its_own(
    web: Web, line: Line
) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await line.ask(asked)
    line.feed(asked[:20])
    line.later(IDLE_SECONDS + 500)
    assert not line.pipe.closed, "not idle any more"
    line.feed(asked[20:])
    assert (await line.reply()).status == 200
