"""Which class of connections to serve with: the first that does what it should here.

Ours build on the inside of uvicorn's, which may change with any release. So each class answers a
few requests before the server starts; one that fails is left out, and the log says so. Without
any of them nothing would be limited, so then there is no server.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn import Config
from uvicorn.server import ServerState

from toolgate.sections import LimitSettings
from toolgate.transports.asgi import ClientGone, Receive, Scope, Send, read_body, send
from toolgate.transports.connection.heads import KNOWN_HEADS, RAW_HEAD, JsonResponse
from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable

logger = logging.getLogger(__name__)
SILENT = logging.Logger("silent", logging.CRITICAL + 1)  # noqa: LOG001 (no settings reach it)
"""What uvicorn says of requests on trial: nobody sent them."""

TURNS = 50
"""How often the event loop may go round until a request is answered."""
GET = b"GET /get HTTP/1.1\r\nhost: a\r\n\r\n"
POST = b"POST /post HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
CHUNKED = (
    b"POST /post HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\nx: y\r\n\r\n"
)
UPGRADE = POST.replace(b"host: a", b"host: a\r\nconnection: upgrade\r\nupgrade: x")

PARSERS = ("httptools", "h11")


class UnfitConnection(Exception):
    """A class of connections does not do what it should."""


class NoConnections(Exception):
    """No class of connections does what it should."""


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 2)})
        self.written = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class _Heads:
    """Knows every head that it is asked for, once a request was seen."""

    seen = False
    principal = None

    def recall(self, key: Any) -> "_Heads | None":
        return self if self.seen else None

    def respond(self, _: Any, body: bytes) -> JsonResponse:
        return JsonResponse(200, b"known " + body, "id")

    def without_credential(self, key: Any) -> None:
        return None


class _Trial:
    """One connection of a class, with a small application behind it."""

    def __init__(self, connections: type[Any]) -> None:
        limits = LimitSettings()
        self.table = ConnectionTable(limits)
        self.heads = _Heads()
        config = Config(
            self._app,
            http=connections,
            ws="none",
            interface="asgi3",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.head_bytes,
        )
        state = {CONNECTION_TABLE: self.table, KNOWN_HEADS: self.heads}
        self.transport = _Transport()
        self.connection = connections(config, ServerState(), state, asyncio.get_running_loop())
        self.connection.logger = SILENT
        self.connection.connection_made(self.transport)

    async def _app(self, scope: Scope, receive: Receive, to: Send) -> None:
        self.heads.seen = scope.get(RAW_HEAD) is not None
        with contextlib.suppress(ClientGone):
            body = await read_body(scope, receive, 100)
            await send(to, 200, scope["path"].encode() + b" " + body)

    async def ask(self, *pieces: bytes, expect: bytes) -> None:
        """Feed pieces, and see that the answer ends as it should."""
        for piece in pieces:
            self.connection.data_received(piece)
        for _ in range(TURNS):
            if self.transport.written.endswith(expect):
                break
            await asyncio.sleep(0)
        else:
            raise UnfitConnection(f"{bytes(self.transport.written[-100:])!r} instead of {expect!r}")
        self.transport.written.clear()


async def _check(connections: type[Any]) -> None:
    trial = _Trial(connections)
    await trial.ask(GET[:9], GET[9:], expect=b"/get ")
    await trial.ask(CHUNKED[:-9], CHUNKED[-9:], expect=b"/post abc")
    await trial.ask(POST, expect=b"/post abc")
    knows = getattr(connections, "knows_heads", False)
    await trial.ask(POST[:-1], POST[-1:], expect=b"known abc" if knows else b"/post abc")
    await trial.ask(GET, expect=b"/get ")
    long = trial.table.limits.head_bytes
    await trial.ask(GET[:-2], b"x" * long, expect=b'(setting limits.head_bytes)."}')
    await _Trial(connections).ask(UPGRADE[:-3], b"abc", expect=b"/post abc")
    for start, name in ((GET[:-2], b"head_seconds"), (CHUNKED[:-9], b"body_seconds")):
        late = _Trial(connections)
        late.connection.data_received(start)
        late.table.sweep(asyncio.get_running_loop().time() + 3600)
        await late.ask(expect=b'(setting limits.%b)."}' % name)


def _classes(*, known_heads: bool) -> "list[Callable[[], type[asyncio.Protocol]]]":
    """From the best to the simplest; each may fail to be imported."""

    def with_known_heads() -> type[asyncio.Protocol]:
        from toolgate.transports.connection.known_heads import Connection  # noqa: PLC0415

        return Connection

    def with_httptools() -> type[asyncio.Protocol]:
        from toolgate.transports.connection.httptools import LimitedHttpTools  # noqa: PLC0415

        return LimitedHttpTools

    def with_h11() -> type[asyncio.Protocol]:
        from toolgate.transports.connection.h11 import LimitedH11  # noqa: PLC0415

        return LimitedH11

    return [*([with_known_heads] if known_heads else []), with_httptools, with_h11]


def connection_class(*, known_heads: bool) -> type[asyncio.Protocol]:
    """The class to serve with; raises NoConnections if none is fit."""
    for load in _classes(known_heads=known_heads):
        try:
            found = load()
        except ImportError as problem:
            missing = isinstance(problem, ModuleNotFoundError) and problem.name
            if missing not in PARSERS:  # a parser may be missing, uvicorn's own modules may not
                logger.warning("uvicorn is not as expected: %s", problem)
            continue
        try:
            asyncio.run(_check(found))
        except Exception as problem:
            logger.warning("uvicorn is not as expected by %s: %r", found.__name__, problem)
            continue
        return found
    raise NoConnections(
        f"toolgate cannot serve with uvicorn {uvicorn.__version__}: connections would not be "
        "limited. The log says what is not as expected. Install toolgate again, with the versions "
        "it asks for."
    )
