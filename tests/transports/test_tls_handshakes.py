"""A TLS handshake takes a place among the connections, like a stranger's, and has its time."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENT
from tests.transports.lines import LONG_LIMITS as LIMITS
from uvicorn import Config
from uvicorn.server import ServerState

from toolgate.certificates import ALWAYS, Files, ensure
from toolgate.sections import LimitSettings
from toolgate.transports.asgi import read_body, send
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable
from toolgate.transports.connection.tls import TlsConnections

pytestmark = pytest.mark.anyio

CAPACITY = 16
REQUEST = b"GET /here HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both event loops: each has a TLS of its own."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return ensure(tmp_path_factory.mktemp("tls"), ALWAYS).files


async def answer(scope: Any, receive: Any, to: Any) -> None:
    await read_body(scope, receive, 100)
    await send(to, 200, f"{scope['scheme']} {scope['path']}".encode())


@dataclass
class Secure:
    """A server in this event loop, and clients for it."""

    port: int
    ca: Path
    table: "Counting"
    state: ServerState
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def connected(self, **tls: Any) -> "Stranger":
        stranger = Stranger(*await asyncio.open_connection("127.0.0.1", self.port, **tls))
        self.writers.append(stranger.writer)
        return stranger

    async def silent(self) -> "Stranger":
        """A connection on which nothing is sent."""
        self.table.accepted = 0
        stranger = await self.connected()
        await until(lambda: self.table.accepted)
        return stranger

    async def ask(self) -> bytes:
        """A client's whole request; the body of its answer."""
        trusted = ssl.create_default_context(cafile=self.ca)
        client = await self.connected(ssl=trusted, server_hostname="localhost")
        client.writer.write(REQUEST)
        return (await client.reader.read()).rpartition(b"\r\n")[2]


@dataclass
class Stranger:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def closed(self) -> bool:
        try:
            return not await self.reader.read()
        except ConnectionError:
            return True

    def is_open(self) -> bool:
        return not self.reader.at_eof() and self.reader.exception() is None


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENT):
        while not holds():  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.001)


class Counting(ConnectionTable):
    accepted = 0
    """Connections that were entered, or refused."""

    def add(self, connection: Any, peer: str | None) -> bool:
        self.accepted += 1
        return super().add(connection, peer)


@asynccontextmanager
async def serving(files: Files, limits: LimitSettings) -> AsyncGenerator[Secure]:
    table, state = Counting(limits), ServerState()
    config = Config(answer, http=Connection, ws="none", log_config=None, access_log=False)
    secured = TlsConnections(Connection, files.certificate, files.key)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: secured(config, state, {CONNECTION_TABLE: table}, loop), "127.0.0.1", 0
    )
    secure = Secure(server.sockets[0].getsockname()[1], files.ca, table, state)
    yield secure
    server.close()
    for connection in list(state.connections):
        connection.shutdown()
    await until(lambda: not state.connections)
    assert len(table) == 0
    for writer in secure.writers:
        writer.transport.abort()
    await asyncio.gather(*(one.wait_closed() for one in secure.writers), return_exceptions=True)


@pytest.fixture
async def limits() -> LimitSettings:
    return LIMITS.model_copy(update={"connections": CAPACITY})


@pytest.fixture
async def secure(files: Files, limits: LimitSettings) -> AsyncIterator[Secure]:
    async with serving(files, limits) as opened:
        yield opened


async def test_a_client_is_answered_over_tls(secure: Secure) -> None:
    assert await secure.ask() == b"https /here"
    await until(lambda: len(secure.table) == 0)


async def test_silent_connections_are_counted_and_the_oldest_go(secure: Secure) -> None:
    secure.table.share = CAPACITY + 1
    strangers = [await secure.silent() for _ in range(CAPACITY)]
    assert len(secure.table) == CAPACITY
    assert await secure.ask() == b"https /here"
    assert await strangers[0].closed()
    assert [one.is_open() for one in strangers[1:]] == [True] * (CAPACITY - 1)


async def test_one_peer_has_half_of_the_places(secure: Secure) -> None:
    strangers = [await secure.silent() for _ in range(CAPACITY)]
    half = CAPACITY // 2
    assert len(secure.table) == half
    for one in strangers[:half]:
        assert await one.closed()
    assert await secure.ask() == b"https /here"


def hello() -> bytes:
    """The first message of a client's handshake."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), sent, server_hostname="localhost"
    )
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize(
    "begin",
    [b"", hello()[:20], hello(), b"GET / HTTP/1.1\r\n\r\n"],
    ids=["nothing", "half a hello", "a hello", "no TLS"],
)
async def test_a_handshake_that_takes_too_long_is_ended(files: Files, begin: bytes) -> None:
    async with serving(files, LimitSettings(head_seconds=0.05)) as secure:
        stranger = await secure.silent()
        stranger.writer.write(begin)
        await until(lambda: len(secure.table) == 0)
        assert secure.state.connections == set()


async def test_a_client_that_leaves_during_the_handshake_leaves_its_place(secure: Secure) -> None:
    stranger = await secure.silent()
    stranger.writer.write(hello())
    await stranger.reader.readexactly(5)
    stranger.writer.transport.abort()
    await until(lambda: len(secure.table) == 0)
    assert secure.state.connections == set()


async def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(
    secure: Secure,
) -> None:
    came, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusted = ssl.create_default_context(cafile=secure.ca)
    client = trusted.wrap_bio(came, sent, server_hostname="localhost")
    wire = await secure.connected()
    reader, writer = wire.reader, wire.writer
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(sent.read())
            came.write(await reader.read(65536))
    client.write(REQUEST)
    writer.write(sent.read())  # the last of the handshake, and all of the request
    said = b""
    while b"https /here" not in said:
        came.write(await reader.read(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            while part := client.read():
                said += part
    writer.transport.abort()
    await until(lambda: len(secure.table) == 0)


async def test_a_stop_waits_for_no_handshake(secure: Secure) -> None:
    stranger = await secure.silent()
    for connection in list(secure.state.connections):
        connection.shutdown()
    assert await stranger.closed()
    assert secure.state.connections == set()
