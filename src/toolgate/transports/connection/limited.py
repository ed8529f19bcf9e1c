"""Limits of an HTTP connection: how long its heads may be, and how long it may take to send them.

These hold before anything is known of the client. uvicorn has no such limits: its parsers keep
whatever comes, for as long as it takes.
"""

import asyncio
import math
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import orjson

from toolgate.sections import LimitSettings
from toolgate.transports.asgi import BODY_LIMIT, MORE_SECONDS, PRINCIPAL, UNAUTHENTICATED, Scope
from toolgate.transports.connection.flow import Flow
from toolgate.transports.connection.table import CONNECTION_TABLE, ConnectionTable
from toolgate.transports.connection.tcp import acknowledged_bytes

if TYPE_CHECKING:
    from uvicorn.server import ServerState

TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
LINGER_SECONDS = 5.0
"""How long a client whose request was refused unread may go on sending it."""
STOP_SECONDS = 0.2
"""How long a connection without a request stays open once the server stops: the client cannot know
of that yet, and a request may be on its way."""
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection that has sent a credential stays open without a request. The pools of
clients and proxies keep theirs for up to a minute: who closes first must not be the server, or a
request meets a connection that has just been closed."""
MAX_DISCARDED = 4
"""How much of a body that was refused unread is thrown away for a caller, as a multiple of what it
may send: most clients read no answer before they have sent all of their request (RFC 9112, 9.6)."""
PIECE_BYTES = 4096
"""How much is parsed at once, unless it is known to be of one body: it may all be requests."""
TOO_LONG = "The request line and headers are over the limit (setting limits.{})."
TOO_SLOW = "The request did not arrive in time (setting limits.{})."
NO_TUNNEL = "This server is no proxy: it does not know the method CONNECT."
STOPPING = "The server is stopping. Try again."
NO_ROOM = "All connections are taken. Try again later."


class Phase(Enum):
    """What the server expects from the client."""

    IDLE = 1
    """A new request, of which nothing has come yet."""
    HEAD = 2
    """The rest of a request line and of the headers."""
    BODY = 3
    """The rest of a body."""
    REFUSED = 4
    """Nothing any more."""


class Limited(asyncio.Protocol):
    """What the connections of either of uvicorn's parsers have in common; a mixin."""

    if TYPE_CHECKING:
        # What uvicorn's protocols have.
        app_state: dict[str, Any]
        client: tuple[str, int] | None
        cycle: Any
        flow: Flow
        loop: asyncio.AbstractEventLoop
        scope: Scope
        server_state: ServerState
        timeout_keep_alive: int
        transport: asyncio.Transport

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        table: ConnectionTable | None = self.app_state.get(CONNECTION_TABLE)
        self._table = ConnectionTable(LimitSettings()) if table is None else table
        self._limits = self._table.limits
        self._phase = Phase.IDLE
        self._keep_alive = max(self.timeout_keep_alive, KEEP_ALIVE_SECONDS)
        self._deadline = math.inf
        """When the client must have sent what is expected; the table looks every second."""
        self._caller: str | None = None
        """Whose credential was accepted last; None if none was, or the last one was refused."""
        self._unparsed = 0
        """Bytes of a head, or between parts of a body, that have not led anywhere yet."""
        self._body_left = 0
        """Bytes of the body that have not come yet, where its head says how many it has."""
        self._discarded = 0
        self._unread = b""
        """What came behind so many requests that it is parsed later."""
        self._unsent = 0
        """Bytes that the client had not taken when the table last looked."""
        self._acknowledged: int | None = None
        """Bytes that its system had acknowledged then, where that is known."""
        self._taken_at = math.inf
        """When it was last seen to take some, or to have none to take."""
        self._closing = False
        """Whether the next answer is the last one: the server is stopping."""

    def connection_made(self, transport: Any) -> None:
        """Take the client in if there is room."""
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._expect(Phase.IDLE, self._limits.head_seconds)
        peer = self._table.peer_of(self.client[0]) if self.client else None
        if not self._table.add(self, peer):
            self._respond(HTTPStatus.SERVICE_UNAVAILABLE, NO_ROOM)
            self._phase = Phase.REFUSED
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the place to others."""
        super().connection_lost(exc)
        self._table.remove(self)

    def pause_writing(self) -> None:
        """Note what waits to be read: all that is written now waits with it."""
        super().pause_writing()
        self._table.unread.hold(self, self.caller, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Note that the client has read nearly all of it."""
        super().resume_writing()
        self._table.unread.release(self)

    def data_received(self, data: bytes) -> None:
        """Hand to the parser no more of a head than a head may have."""
        if self._is_refused or self._is_discarding:
            self._discard(len(data))
        data, at = self._unread + data, 0
        while at < len(data) and not self._is_refused and not self._has_enough:
            if self._phase is Phase.BODY:
                room = max(PIECE_BYTES, self._body_left)
            else:
                room = min(PIECE_BYTES, self._limits.head_bytes - self._unparsed)
            piece = data[at : at + room]
            at += len(piece)
            self._unparsed = 0 if self._parse(piece) else self._unparsed + len(piece)
            if self._unparsed >= self._limits.head_bytes and not self._is_refused:
                self.refuse(TOO_LARGE, TOO_LONG.format("head_bytes"))
        self._unread = b"" if self._is_refused else data[at:]
        if self._closing:
            self._close_after_answer()
        self.flow.enough = bool(self._unread)
        if self._unread:
            self.flow.pause_reading()

    @property
    def _has_enough(self) -> bool:
        """Whether so many requests wait for their answers that no more are parsed."""
        raise NotImplementedError

    def _parse(self, data: bytes) -> bool:
        """Parse what came; whether a head or a part of a body was completed by it."""
        raise NotImplementedError

    @property
    def _is_refused(self) -> bool:
        """Whether nothing is read any more."""
        return self._phase is Phase.REFUSED

    @property
    def _is_discarding(self) -> bool:
        """Whether the body that comes is of a request that has its answer."""
        return self._phase is Phase.BODY and self.cycle.response_complete

    def _discard(self, size: int) -> None:
        """Throw away what is not wanted: a client may send all of it before it reads its answer."""
        self._discarded += size
        most = self._noted.get(BODY_LIMIT, self._limits.body_bytes)
        if self._discarded > (most * MAX_DISCARDED if PRINCIPAL in self._noted else most):
            self.transport.abort()

    def _expect(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._deadline = self.loop.time() + seconds

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer a request that is not complete, read no further, and close.

        Where an earlier request is still being answered, that answer is the last one.
        """
        cycle, phase = self.cycle, self._phase
        self._expect(Phase.REFUSED, LINGER_SECONDS)
        if self.transport.is_closing():
            return
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if phase is not Phase.BODY:
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                return self.transport.close()
        self._respond(status, message)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _respond(self, status: HTTPStatus, message: str) -> None:
        body = orjson.dumps({"error": message})
        defaults = [b"%b: %b\r\n" % one for one in self.server_state.default_headers]
        head = (
            b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()),
            *defaults,
            b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
        )
        self.transport.write(b"".join((*head, body)))

    def send_400_response(self, msg: str) -> None:
        """Read no further after a request that cannot be parsed."""
        if not self._is_refused:
            self._phase = Phase.REFUSED
            cast(Any, super()).send_400_response(msg)

    def on_response_complete(self) -> None:
        """Wait for the next request, but not for long."""
        scope = self._answered
        if UNAUTHENTICATED in scope:
            self._set_caller(None)
        elif self._caller is None and PRINCIPAL in scope:
            self._set_caller(scope[PRINCIPAL].id)
        if self._phase in (Phase.IDLE, Phase.REFUSED) or self._is_discarding:
            self._expect_next()
        self._discarded = 0
        cast(Any, super()).on_response_complete()
        if self._unread and not self._has_enough and not self.transport.is_closing():
            self.flow.enough = False
            self.flow.resume_reading()
            Limited.data_received(self, b"")

    def _expect_next(self) -> None:
        """Keep a client's connection for its next request, but no stranger's rest of a body."""
        seconds: float = self.timeout_keep_alive
        if self._caller is not None and self._phase is Phase.IDLE:
            seconds = self._keep_alive
        elif self._caller is not None and BODY_LIMIT in self._noted:
            seconds = max(seconds, self._limits.body_seconds)
        self._deadline = self.loop.time() + seconds

    def _set_caller(self, caller: str | None) -> None:
        if caller != self._caller:
            self._caller = caller
            self._table.set_caller(self, caller)

    def timeout_keep_alive_handler(self) -> None:
        """Leave it to the table, which knows all deadlines; uvicorn has a timer for this one."""

    # What the table asks

    @property
    def caller(self) -> str | None:
        """Whose credential was accepted here; None for a stranger."""
        if self._caller is None and (principal := self._answered.get(PRINCIPAL)) is not None:
            return principal.id
        return self._caller

    @property
    def has_credentials(self) -> bool:
        """Whether it is no stranger's."""
        return self.caller is not None

    @property
    def _answered(self) -> Scope:
        """The request that is being answered, or was answered last."""
        return self.scope or {}

    @property
    def _noted(self) -> Scope:
        """What the application noted of the last request that it was given."""
        return self.scope or {}

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered, for a client that may be waiting for its answer.

        A stranger that does not read its answers, or sends more requests before it has them, is
        not waiting.
        """
        if not self._has_request:
            return False
        return self.has_credentials or not (self.flow.write_paused or self._is_pipelining)

    @property
    def _has_request(self) -> bool:
        """Whether a request that is complete has no complete answer yet."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.disconnected:
            return False
        if self.transport.is_closing():
            return False
        return self._phase is not Phase.BODY or self.flow.read_paused

    @property
    def _is_pipelining(self) -> bool:
        """Whether more requests have come while one is being answered."""
        return self.flow.read_paused

    @property
    def is_idle(self) -> bool:
        """Whether it is between requests, or sends the rest of one that has its answer."""
        return not self._has_request and (self._phase is Phase.IDLE or self._is_discarding)

    def check_deadline(self, now: float) -> None:
        """Close if what is expected did not come in time, or the answers are not taken."""
        if self._is_stalled(now):
            self.transport.abort()
        elif now >= self._deadline and not self._has_request:
            self._end()

    def _is_stalled(self, now: float) -> bool:
        """Whether the client has taken nothing for long of what there is for it."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        acked = acknowledged_bytes(self.transport) if self._unsent else self._acknowledged
        if not before or self._unsent < before or acked != self._acknowledged:
            self._taken_at = now
        self._acknowledged = acked
        return now - self._taken_at >= self._limits.body_seconds

    def _end(self) -> None:
        phase = self._phase
        if self.transport.is_closing():
            if not self.has_credentials:  # a client has as long as it goes on reading
                self.transport.abort()
        elif phase is Phase.HEAD:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW.format("head_seconds"))
        elif phase is Phase.BODY and (more := self._noted.pop(MORE_SECONDS, 0.0)) > 0:
            self._deadline += more  # a larger body, at the same rate
        elif phase is Phase.BODY and not self._is_discarding:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW.format("body_seconds"))
        elif phase is Phase.REFUSED:
            self.drop()
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """Answer what has come or is on its way, and close: the server is stopping."""
        self._closing = True
        self._close_after_answer()
        if self._is_refused and not self._has_request:
            self.transport.close()
        else:
            self.loop.call_later(STOP_SECONDS, self._close_unused)

    def _close_after_answer(self) -> None:
        """Let the client know that the answer to its last request is the last one."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False

    def _close_unused(self) -> None:
        """Close, unless a request has come meanwhile: its answer closes."""
        is_reading = self._phase is Phase.BODY and not self._is_discarding
        if self._has_request or is_reading or self.transport.is_closing():
            return
        if self._phase is Phase.HEAD:
            self._refuse_stopping()
        else:
            self.transport.close()

    def _refuse_stopping(self) -> None:
        self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
        self._deadline = self.loop.time()  # the table closes it when it looks next

    def stop_reading(self) -> None:
        """Wait no longer for the rest of a body: the server is about to end."""
        if self._phase is Phase.BODY and not self._is_discarding:
            self._refuse_stopping()

    def drop(self) -> None:
        """Close at once: what is not sent by now is lost, since nobody may ever read it."""
        unsent = self.transport.is_closing() or self.transport.get_write_buffer_size()
        if self.has_credentials and not unsent:
            self.transport.close()
        else:
            self.transport.abort()
