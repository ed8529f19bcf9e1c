"""TLS handshakes: each takes a place in the connection table, and has a time.

The event loop's own TLS shows a connection to its protocol only after the handshake, for which it
gives it a minute. Until then nothing would count it, and strangers could hold every open file.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from uvicorn import Config
from uvicorn.protocols.utils import get_remote_addr
from uvicorn.server import ServerState

from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable

SHUTDOWN_SECONDS = 5.0
"""How long a client that is told the end of TLS may take to agree."""


@dataclass(frozen=True)
class TlsConnections:
    """Makes connections over TLS; uvicorn takes it for their class. Workers get a copy each."""

    connections: type[asyncio.Protocol]
    certificate: Path
    key: Path

    @cached_property
    def context(self) -> ssl.SSLContext:
        """How this server speaks TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def __call__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "Handshake":
        """A connection that was just accepted."""

        def connection() -> asyncio.Protocol:
            return cast(Any, self.connections)(config, server_state, app_state, _loop)

        return Handshake(self.context, app_state[CONNECTION_TABLE], server_state, connection)


class Handshake(SSLProtocol):
    """A TLS connection: a stranger's until its handshake is over and HTTP begins.

    asyncio's own TLS, also where the event loop has another: that one cannot be extended.
    """

    caller = None
    is_answering = False
    is_idle = False

    def __init__(
        self,
        context: ssl.SSLContext,
        table: ConnectionTable,
        server_state: ServerState,
        connection: Callable[[], asyncio.Protocol],
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            _HttpStart(self, connection),
            context,
            waiter=cast(Any, None),
            server_side=True,
            ssl_handshake_timeout=cast(Any, table.limits.head_seconds),  # need not be whole
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._table = table
        self._awaited: set[Any] = server_state.connections
        """The connections that the server waits for when it stops."""
        self._tcp: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        """Take the client in if there is room."""
        self._tcp = transport
        client = get_remote_addr(transport)
        peer = self._table.peer_of(client[0]) if client else None
        if not self._table.add(self, peer):
            return transport.abort()
        self._awaited.add(self)
        return super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Leave the place to others."""
        self.leave()
        super().connection_lost(exc)

    def leave(self) -> None:
        """Leave the place to the HTTP connection, which takes one of its own."""
        self._table.remove(self)
        self._awaited.discard(self)

    def shutdown(self) -> None:
        """Leave when the server stops."""
        self.drop()

    # What the table asks

    def check_deadline(self, now: float) -> None:
        """Leave it to asyncio, which ends a handshake that takes too long."""

    def stop_reading(self) -> None:
        """Nothing of a request has come."""

    def drop(self) -> None:
        """Close at once."""
        if self._tcp is not None:
            self._tcp.abort()


class _HttpStart(asyncio.Protocol):
    """Lets HTTP begin when the handshake is over."""

    def __init__(self, handshake: Handshake, connection: Callable[[], asyncio.Protocol]) -> None:
        self._handshake = handshake
        self._new_connection = connection

    def connection_made(self, transport: Any) -> None:
        self._handshake.leave()
        connection = self._new_connection()
        transport.set_protocol(connection)
        connection.connection_made(transport)
