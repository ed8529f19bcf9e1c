"""A client that asks for attachments and does not read them holds little memory."""

import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.gate.files import File
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, Reply, written
from tests.transports.mcp_requests import LEGACY, MODERN, Request, request

from toolgate.gate.attachments import Attachment, uri_of
from toolgate.gate.principal import Role
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.known_heads import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

DATA = bytes(range(256)) * 4096
ROOM = len(DATA) * 7 // 2
"""For two of one caller, and one of another."""
HIGH_WATER = 64 * 1024
JSON = {"content-type": "application/json"}
RPC: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "big.get", "params": {}}
READ = {"uri": uri_of("big.get", {})}
BASE64 = base64.b64encode(DATA)

Ask = Callable[[str], bytes]


async def big(ctx: Any, args: Any) -> File:
    return File(path="big", content_bytes_base64=Attachment.of(DATA))


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tool = a_tool("big.get", big, gives=File, role=Role.USER)
    folder = tmp_path_factory.mktemp("unsent")
    async with opened_web(folder, offer(tool), limits__unsent_attachment_bytes=ROOM) as opened:
        yield opened


WAYS: dict[str, tuple[bytes, Request, bytes]] = {
    "JSON": (b"/v1/tools/big.get", Request({}, JSON), BASE64),
    "bytes": (
        b"/v1/tools/big.get",
        Request({}, JSON | {"accept": "application/octet-stream"}),
        DATA,
    ),
    "JSON-RPC": (b"/rpc", Request(RPC, JSON), BASE64),
    "MCP": (b"/mcp", request(MODERN, "resources/read", READ), BASE64),
    "older MCP": (b"/mcp", request(LEGACY, "resources/read", READ), BASE64),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ask(web: Web, way: str) -> Ask:
    path, asked, _ = WAYS[way]
    return lambda holder: written(web, asked, holder).replace(b"/mcp", path, 1)


@pytest.fixture(params=[Connection, LimitedH11])
async def connect(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Callable[[], Line]]:
    lines: list[Line] = []

    def connect() -> Line:
        lines.append(Line(web, connections=request.param))
        return lines[-1]

    yield connect
    for line in lines:
        await line.hang_up()


def leave_unread(line: Line) -> None:
    """Take no more than the system's buffers do."""
    write = line.pipe.write

    def hesitate(data: Any) -> None:
        write(data)
        if len(line.pipe.written) > HIGH_WATER:
            line.server.pause_writing()

    line.pipe.__dict__["write"] = hesitate


def read_on(line: Line) -> None:
    del line.pipe.__dict__["write"]
    line.server.resume_writing()


async def unread(connect: Callable[[], Line], wire: bytes) -> Line:
    line = connect()
    leave_unread(line)
    line.feed(wire)
    await line.until(lambda: line.server.flow.write_paused)
    return line


def check_refused(way: str, reply: Reply, told: str) -> None:
    assert told.encode() in reply.body
    if "MCP" in way:
        assert b'"code":-32400,' in reply.body
    else:
        assert (reply.status, reply.headers["retry-after"]) == (429, "5")


async def test_who_does_not_read_its_attachments_gets_no_more_of_them(
    connect: Callable[[], Line], ask: Ask, way: str
) -> None:
    lines = [await unread(connect, ask("admin")) for _ in range(2)]
    check_refused(way, await connect().ask(ask("admin")), f"have not read {2 * len(DATA)} bytes")
    other = await unread(connect, ask("user"))
    assert other.pipe.written.startswith(b"HTTP/1.1 200 "), "others find room"
    check_refused(way, await connect().ask(ask("user")), "Try again in 5 s")
    for line in (*lines, other):
        assert len(line.pipe.written) < 4 * HIGH_WATER
        read_on(line)
        assert WAYS[way][2] in (await line.reply()).body
    assert (await connect().ask(ask("admin"))).status == 200


async def test_who_leaves_gives_the_room_back(
    connect: Callable[[], Line], ask: Ask, way: str
) -> None:
    for _ in range(3):
        for line in [await unread(connect, ask("admin")) for _ in range(2)]:
            await line.hang_up()
    reply = await connect().ask(ask("admin"))
    assert WAYS[way][2] in reply.body
