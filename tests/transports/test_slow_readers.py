"""A client that reads slowly over a real connection is not cut; one that reads nothing is."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.patience import PATIENT
from tests.transports.lines import BODY_SECONDS, IDLE_SECONDS, LONG_LIMITS
from uvicorn import Config
from uvicorn.server import ServerState

from toolgate.transports.asgi import Receive, Scope, Send, send
from toolgate.transports.attachments import in_pieces
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable
from toolgate.transports.connection.tcp import acknowledged_bytes

pytestmark = pytest.mark.anyio

SIZE = 16 * 1024 * 1024
"""More than the buffers of both systems together hold."""
RECEIVED = 64 * 1024
"""The client's buffer, so that little is under way that it has not read."""


async def large(scope: Scope, receive: Receive, to: Send) -> None:
    await send(in_pieces(to), 200, bytes(SIZE))


@dataclass
class Connection:
    """Both ends of a connection, and a clock that only the test moves."""

    client: socket.socket
    server: Any
    table: ConnectionTable
    now: float

    @property
    def unsent(self) -> int:
        return self.server.transport.get_write_buffer_size()

    @property
    def acknowledged(self) -> int:
        return acknowledged_bytes(self.server.transport) or 0

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.table.sweep(self.now)

    def read(self) -> int:
        try:
            return len(self.client.recv(4096))
        except BlockingIOError:
            return 0


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENT):
        while not holds():  # noqa: ASYNC110 - nothing tells what systems do
            await asyncio.sleep(0.001)


@pytest.fixture(params=[LimitedHttpTools, LimitedH11])
async def connection(request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    config = Config(
        large,
        http=request.param,
        ws="none",
        access_log=False,
        log_config=None,
        timeout_keep_alive=IDLE_SECONDS,
    )
    table, made = ConnectionTable(LONG_LIMITS), list[Any]()
    loop = asyncio.get_running_loop()

    def accept() -> Any:
        made.append(request.param(config, ServerState(), {CONNECTION_TABLE: table}, loop))
        return made[0]

    server = await loop.create_server(accept, "127.0.0.1", 0)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        client.setblocking(False)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await until(lambda: made and made[0].flow and made[0].flow.write_paused)
        yield Connection(client, made[0], table, loop.time())
    server.close()
    if not made[0].transport.is_closing():
        made[0].transport.abort()
    await until(lambda: not made[0].tasks)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not tell")
async def test_whoever_reads_slowly_is_not_cut(connection: Connection) -> None:
    connection.later(0)
    for _ in range(10):
        before = connection.acknowledged
        await until(lambda before=before: connection.read() and connection.acknowledged > before)
        connection.later(BODY_SECONDS * 0.9)
        assert not connection.server.transport.is_closing()


async def test_whoever_reads_nothing_is_cut(connection: Connection) -> None:
    """Not before the systems have all that they take."""

    def cut() -> bool:
        connection.later(BODY_SECONDS * 0.6)
        return connection.server.transport.is_closing()

    connection.later(0)
    await until(cut)
    assert connection.acknowledged < SIZE
