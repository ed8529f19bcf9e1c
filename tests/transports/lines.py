"""A client's end of an HTTP connection, in this process: bytes in, bytes out, nothing between."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from tests.patience import PATIENT
from tests.transports.conftest import Web
from tests.transports.mcp_requests import Request
from uvicorn import Config
from uvicorn.server import ServerState

from toolgate.sections import LimitSettings
from toolgate.transports.connection.heads import KNOWN_HEADS, SeenKeys
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable
from toolgate.transports.edge import Edge

IDLE_SECONDS, HEAD_SECONDS, BODY_SECONDS = 1000, 2000, 3000
"""So long that no test is as slow, however busy the machine."""
LONG_LIMITS = LimitSettings(head_seconds=HEAD_SECONDS, body_seconds=BODY_SECONDS)


class Pipe(asyncio.Transport):
    """What the server writes, and what it does to the connection."""

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 4711), "sockname": ("127.0.0.1", 80)})
        self.written = bytearray()
        self.closed = False
        """Whether nothing more is read or written."""
        self.gone = False
        """Whether its file is free again."""
        self.unsent = 0
        """Of what was written: how much the client has left unread, beyond the system's buffers."""
        self.ended = False
        self.reading = True

    def write(self, data: Any) -> None:
        assert not self.closed, "written after the end"
        self.written += data

    def close(self) -> None:
        self.closed = True
        self.gone = self.gone or not self.unsent  # asyncio first waits until all is sent

    def abort(self) -> None:
        self.closed = self.gone = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> tuple[int, dict[str, str], bytes]:
        """All of it but the id of the request."""
        return self.status, self.headers | {"x-request-id": ""}, self.body


@dataclass
class Line:
    """One connection to an application."""

    web: Web
    peer: str = "127.0.0.1"
    requests: int = 0
    """How many requests went through ASGI."""
    connections: type[Any] = Connection
    idle_seconds: int = IDLE_SECONDS
    table: ConnectionTable = field(default_factory=lambda: ConnectionTable(LONG_LIMITS))
    pipe: Pipe = field(init=False)
    server: Any = field(init=False)

    def __post_init__(self) -> None:
        edge = self.web.app
        assert isinstance(edge, Edge)

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            self.requests += 1
            await edge(scope, receive, send)

        config = Config(
            counted,
            http=self.connections,
            ws="none",
            access_log=False,
            log_config=None,
            timeout_keep_alive=self.idle_seconds,
            h11_max_incomplete_event_size=self.table.limits.head_bytes,
        )
        loop = asyncio.get_running_loop()
        state = {KNOWN_HEADS: edge.heads, CONNECTION_TABLE: self.table}
        self.server = self.connections(config, ServerState(), state, loop)
        self.pipe = Pipe(self.peer)
        self.server.connection_made(self.pipe)

    async def hang_up(self) -> None:
        """Leave as a client does, and let the server notice."""
        self.pipe.closed = True
        self.server.connection_lost(None)
        await self.until(lambda: not self.server.tasks)

    def leave_unread(self, size: int = 100_000) -> None:
        """Take no more of what the server writes."""
        self.pipe.unsent = size
        self.server.pause_writing()

    def later(self, seconds: float) -> None:
        """Let the table look at its connections as if so much time had passed."""
        self.table.sweep(self.server.loop.time() + seconds)

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.server.data_received(piece)

    async def reply(self) -> Reply:
        """The next whole answer."""
        found: list[Reply] = []

        def came() -> bool:
            found.extend(self._next())
            return bool(found)

        await self.until(came)
        return found[0]

    async def ask_alone(self, wire: bytes) -> Reply:
        """Ask for what is known, in the task of the test: nothing else runs meanwhile."""
        begun: list[Any] = []
        loop = self.server.loop
        self.server.loop = cast(Any, SimpleNamespace(time=loop.time, create_task=begun.append))
        self.feed(wire)
        for one in begun:
            await one
        self.server.loop = loop
        (found,) = self._next()
        return found

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the server work until something holds."""
        async with asyncio.timeout(PATIENT):
            while not holds():  # noqa: ASYNC110 - there is nothing to be told by
                await asyncio.sleep(0)

    async def ask(self, *pieces: bytes) -> Reply:
        self.feed(*pieces)
        return await self.reply()

    def _next(self) -> list[Reply]:
        head, found, rest = bytes(self.pipe.written).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        named = [line.partition(": ") for line in lines[1:]]
        headers = {name.lower(): value for name, _, value in named}
        length = int(headers.get("content-length", 0))
        if not found or len(rest) < length:
            return []
        self.pipe.written = bytearray(rest[length:])
        return [Reply(int(lines[0].split()[1]), headers, rest[:length])]


def fresh_line(web: Web) -> Line:
    """A connection to an application that has not seen any request yet."""
    assert isinstance(web.app, Edge)
    web.app.heads.forget()
    web.app.heads.sightings = SeenKeys()
    return Line(web)


async def known(line: Line, asked: bytes) -> None:
    """Let a request be seen twice, so that the next like it is known."""
    for _ in range(2):
        await line.ask(asked)
        await line.until(lambda: not line.server.tasks)
    line.requests = 0


def written(web: Web, asked: Request, holder: str = "admin", **headers: str | None) -> bytes:
    """A request as it goes over the wire."""
    content = asked.body if isinstance(asked.body, bytes) else json.dumps(asked.body).encode()
    every = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {web.keys[holder]}",
        **asked.headers,
        "content-length": str(len(content)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}" for name, value in every.items() if value is not None]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode("latin-1") + content
