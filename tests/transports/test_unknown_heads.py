"""Requests that connections do not know again, however often they come."""

import asyncio

import pytest
from tests.transports.conftest import Web
from tests.transports.lines import Line, fresh_line, known, written
from tests.transports.mcp_requests import MODERN, tool_call

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CALL = tool_call(MODERN, "get_document", {"collection": "users", "document_id": "jane"})


@pytest.fixture
async def line(web: Web) -> Line:
    """A connection to an application that knows no request yet."""
    return fresh_line(web)


@pytest.mark.parametrize(
    "headers",
    [
        {"connection": "close"},
        {"expect": "100-continue"},
        {"upgrade": "websocket"},
        {"x_request_id": "mine-1"},
        {"content_length": None, "transfer_encoding": "chunked"},
    ],
)
async def test_a_head_that_asks_for_more_is_never_known(
    web: Web, headers: dict[str, str | None]
) -> None:
    asked = CALL
    for _ in range(2):
        line = Line(web)  # anew: some of these end the connection
        wire = written(web, asked, **headers)
        if "transfer_encoding" in headers:
            head, _, body = wire.partition(b"\r\n\r\n")
            wire = head + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        line.feed(wire)
        await line.until(lambda line=line: b'"result"' in line.pipe.written)
        assert line.requests == 1
        assert line.pipe.closed == ("connection" in headers)


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        (b"\r\naccept", b"\naccept"),
        (b"json, text", b"json,\r\n text"),
        (b"POST", b"\r\nPOST"),
        (b"\r\n\r\n", b"\n\n\r\ncontent-length: 1\r\n\r\n"),
    ],
)
async def test_lines_that_end_otherwise_are_never_known(web: Web, usual: bytes, odd: bytes) -> None:
    wire = written(web, CALL).replace(usual, odd, 1)
    for _ in range(2):
        line = Line(web)
        line.feed(wire)
        await line.until(lambda line=line: line.pipe.written)
        refused = line.pipe.written.startswith(b"HTTP/1.1 400")
        assert line.requests == (0 if refused else 1)


async def test_an_older_http_is_never_known(web: Web) -> None:
    wire = written(web, CALL).replace(b"HTTP/1.1", b"HTTP/1.0")
    for _ in range(2):
        line = Line(web)
        assert (await line.ask(wire)).status == 200
        assert line.requests == 1
        assert line.pipe.closed


LENGTHS = [
    ("+{}", b"HTTP/1.1 400"),
    ("{}, {}", b"HTTP/1.1 400"),
    ("0x{}", b"HTTP/1.1 400"),
    ("-{}", b"HTTP/1.1 400"),
    ("", b"HTTP/1.1 400"),
    ("{} ", b"HTTP/1.1 200"),
    ("{}0000000", b"HTTP/1.1 413"),
]
"""How it is written, and how the parser takes it; what is said to be too long is not waited for."""


async def settled(web: Web, wire: bytes) -> tuple[bytes, bool, int]:
    """How a new connection answers, whether it ends, and how many requests went through ASGI."""
    line = Line(web)
    line.feed(wire)
    for _ in range(100):
        await asyncio.sleep(0)
    return bytes(line.pipe.written[:12]), line.pipe.closed, line.requests


@pytest.mark.parametrize(("length", "answer"), LENGTHS)
async def test_a_length_that_is_no_plain_number_is_the_parsers_to_judge(
    web: Web, line: Line, length: str, answer: bytes
) -> None:
    asked = written(web, CALL)
    await known(line, asked)
    number = len(asked.partition(b"\r\n\r\n")[2])
    odd = asked.replace(
        b": %d\r\n\r\n" % number, f": {length}\r\n\r\n".replace("{}", str(number)).encode()
    )
    assert odd != asked
    refused = answer.endswith(b"400")
    for _ in range(2):
        assert await settled(web, odd) == (answer, refused, 0 if refused else 1)


@pytest.mark.parametrize("second", ["content-length: {}", "Content-Length: 1", "X-Strength: {}"])
@pytest.mark.parametrize("place", [b"\r\nhost", b"\r\n\r\n"])
async def test_a_second_length_is_never_taken_for_the_first(
    web: Web, line: Line, second: str, place: bytes
) -> None:
    asked = written(web, CALL)
    await known(line, asked)
    added = second.format(len(asked.partition(b"\r\n\r\n")[2])).encode()
    odd = asked.replace(place, b"\r\n" + added + place, 1)
    answer, ended, _ = await settled(web, odd)
    if "Strength" in second:
        assert (answer, ended) == (b"HTTP/1.1 200", False)
    else:
        assert (answer, ended) == (b"HTTP/1.1 400", True)
    assert (await settled(web, odd))[:2] == (answer, ended)


@pytest.mark.parametrize(
    "credential", ["", " ", "wrong", "tg_0_0", "é", "{admin}x", "Bearer {admin}"]
)
async def test_a_credential_that_is_not_good_is_refused_as_ever(
    web: Web, line: Line, credential: str
) -> None:
    asked = CALL
    await known(line, written(web, asked))
    given = f"Bearer {credential.format(admin=web.keys['admin'])}"
    refused = written(web, asked, authorization=given)
    first = await line.ask(refused)
    assert first.status == 401
    assert (await Line(web).ask(refused)).told == first.told
    assert line.requests == 1
    assert (await line.ask(written(web, asked))).status == 200


async def test_a_second_credential_is_never_taken_for_the_first(web: Web, line: Line) -> None:
    asked = written(web, CALL)
    await known(line, asked)
    for second in (f"Bearer {web.keys['user']}", "Bearer ", "Basic eDp5"):
        added = b"\r\nauthorization: " + second.encode()
        for odd in (
            asked.replace(b"\r\nauthorization", added + b"\r\nauthorization", 1),
            asked.replace(b"\r\naccept", added + b"\r\naccept", 1),
        ):
            line.requests = 0
            first = await line.ask(odd)
            assert line.requests == 1
            assert (await line.ask(odd)).told == first.told
            assert line.requests == 2
