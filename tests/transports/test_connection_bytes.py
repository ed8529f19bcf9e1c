"""Whatever comes over a connection, ours answer byte for byte as uvicorn's own do.

But for one thing: uvicorn answers what it cannot parse before the requests that came with it, and
then closes, so that nobody knows how these ended. Ours answer in the order in which things came.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, written
from tests.transports.mcp_requests import LEGACY, MODERN, Request, request, tool_call
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolgate.gate.principal import Role
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

REQUEST_ID = re.compile(rb"x-request-id: [^\r]+")
TURNS = 60
"""How often the event loop goes round until a request is surely answered; nothing here waits."""


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    echo = offer(a_tool("echo", role=Role.PUBLIC))
    async with opened_web(tmp_path_factory.mktemp("bytes"), echo) as opened:
        yield opened


CALLS = [
    request(MODERN, "tools/list"),
    request(LEGACY, "tools/list"),
    tool_call(MODERN, "echo", {}),
    tool_call(LEGACY, "echo", {}),
    tool_call(MODERN, "echo", {"unknown": 1}),
    tool_call(LEGACY, "no_such_tool", {}),
    Request(b"{nonsense", tool_call(LEGACY, "echo", {}).headers),
    Request(b"", tool_call(LEGACY, "echo", {}).headers),
]
PLAIN = [
    b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET /nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    b"\r\n\r\nGET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"POST /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 3\r\n\r\nabc",
]
BROKEN = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: x\r\n\r\n",
]
CHANGES: list[dict[str, str | None]] = [
    {},
    {"connection": "keep-alive"},
    {"connection": "close"},
    {"x_request_id": "mine"},
    {"authorization": "Bearer wrong"},
    {"authorization": None},
    {"host": "evil.example"},
    {"origin": "https://evil.example"},
    {"accept": "text/html"},
    {"traceparent": "00-1-2-01"},
    {"expect": "100-continue"},
]


def in_chunks(wire: bytes) -> bytes:
    """The same request with its body in chunks, and a trailer."""
    head, _, body = wire.partition(b"\r\n\r\n")
    head = re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", head)
    middle = len(body) // 2
    parts = [one for one in (body[:middle], body[middle:]) if one]
    chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts)
    return head + b"\r\n\r\n" + chunks + b"0\r\nx-trailer: y\r\n\r\n"


@st.composite
def requests(draw: Any) -> Any:
    """Writes one request, once the keys are known."""
    call, change = draw(st.sampled_from(CALLS)), draw(st.sampled_from(CHANGES))
    holder = draw(st.sampled_from(["admin", "user"]))
    form = draw(st.sampled_from([bytes, bytes, bytes, in_chunks, swapped_case]))
    return lambda web: form(written(web, call, holder, **change))


def swapped_case(wire: bytes) -> bytes:
    head, _, body = wire.partition(b"\r\n\r\n")
    head = head.replace(b"content-length", b"Content-Length").replace(b"host", b"HOST")
    return head + b"\r\n\r\n" + body


def raw(wire: bytes) -> Any:
    return lambda _: wire


sequences = st.lists(
    st.one_of(requests(), requests(), requests(), st.sampled_from(PLAIN).map(raw)),
    min_size=1,
    max_size=5,
)
cuts = st.lists(st.integers(min_value=0, max_value=4000), max_size=6)


async def spoken(web: Web, connections: type[Any], pieces: list[bytes]) -> tuple[bytes, bool]:
    """All that a connection answers, and whether it then is closed."""
    line = Line(web, connections=connections)
    for piece in pieces:
        if line.pipe.closed:
            break
        line.feed(piece)
        for _ in range(TURNS):
            await asyncio.sleep(0)
    said, closed = REQUEST_ID.sub(b"x-request-id: 1", bytes(line.pipe.written)), line.pipe.closed
    await line.hang_up()
    return said, closed


def cut(wire: bytes, at: list[int]) -> list[bytes]:
    marks = [0, *sorted({one % (len(wire) + 1) for one in at}), len(wire)]
    pieces = [wire[start:end] for start, end in pairwise(marks)]
    return [piece for piece in pieces if piece]


@given(sequences, cuts, st.booleans(), st.sampled_from([b"", b"", b"", *BROKEN]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_ours_answer_byte_for_byte_like_uvicorns(
    web: Web, sequence: list[Any], at: list[int], together: bool, broken: bytes
) -> None:
    wires = [make(web) for make in sequence] + ([broken] if broken else [])
    pieces = cut(b"".join(wires), at) if together else [one for w in wires for one in cut(w, at)]
    expected = await spoken(web, HttpToolsProtocol, wires)
    assert expected[0]
    for connections in (Connection, LimitedHttpTools):
        for _ in range(3):  # the third time, what can be known is known
            assert await spoken(web, connections, pieces) == expected
