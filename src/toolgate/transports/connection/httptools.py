"""uvicorn's connections with httptools' parser, within limits."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from toolgate.transports.asgi import LARGE, PRINCIPAL, Scope, body_length
from toolgate.transports.connection.limited import NO_TUNNEL, TOO_LARGE, TOO_LONG, Limited, Phase

MAX_PIPELINED = 16
"""Past so many requests behind the one that is being answered, no more are parsed: each takes a
hundred times the memory of its bytes."""
INVALID = "Invalid HTTP request received."


@dataclass(frozen=True, slots=True)
class LingeringTransport:
    """What the answer to a request with a large body is written to (RFC 9112, 9.6)."""

    transport: asyncio.Transport
    close: Callable[[], None]

    def write(self, data: bytes) -> None:
        """Send some of it."""
        self.transport.write(data)


class TooManyHeaders(Exception):
    """A request has more headers than it may."""


class LimitedHttpTools(Limited, HttpToolsProtocol):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A connection of a client, which sends one request after the other."""

    _progress = False
    """Whether a head or a part of a body was completed since this was last looked at."""
    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the one that was read last."""
    _ends_with_body = False
    """Whether the last answer is sent, and nothing is awaited but the rest of its request."""
    _unreadable: str | None = None
    """What is said of the bytes behind the last request, once that one has its answer."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.flow.write_paused and self.has_credentials:
            app = self.flow.in_turn(app)
        if self._caller is None:
            self._table.note_request(self)
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; uvicorn tells the one that was read last."""
        super().connection_lost(exc)
        if (running := self._running) is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, after the answers to what came before it.

        Requests that came whole are run, so their clients have to know how these ended.
        """
        self._drop_unread()
        if self._is_refused or not self._has_unanswered:
            super().send_400_response(msg)
        else:
            self._phase, self._unreadable = Phase.REFUSED, msg

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Where earlier requests are still being answered, their answers are the last ones."""
        self._drop_unread()
        super().refuse(status, message)

    def _drop_unread(self) -> None:
        """Forget a request that waits for earlier ones, and whose body does not come."""
        if self._phase is Phase.BODY and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else self._running  # pyright: ignore[reportAttributeAccessIssue]
            self._phase = Phase.IDLE

    @property
    def _answered(self) -> Scope:
        """Not `scope`: that is of the request which was read last, or has only begun."""
        return {} if self._running is None else self._running.scope  # pyright: ignore[reportReturnType]

    @property
    def _has_unanswered(self) -> bool:
        """Whether a request that came whole has no complete answer yet."""
        running = self._running
        if running is None or running.response_complete or running.disconnected:
            return False
        return self._phase is not Phase.BODY or running is not self.cycle

    def on_response_complete(self) -> None:
        """Answer the next request; after the last one, refuse what is behind it."""
        super().on_response_complete()
        if self._unreadable and not self._has_unanswered and not self.transport.is_closing():
            HttpToolsProtocol.send_400_response(self, self._unreadable)

    def _parse(self, data: bytes) -> bool:
        self._progress = False
        self._unset_keepalive_if_required()
        self._feed(data)
        if not self._is_refused and self._has_too_many_headers():
            self._refuse_headers()
        return self._progress

    def _feed(self, data: bytes) -> None:
        """As uvicorn does, but for requests that ask for another protocol."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._read_as_plain_http(data[upgrade.args[0] :])
        except HttpParserError:
            self.logger.warning(INVALID)
            self.send_400_response(INVALID)

    def _read_as_plain_http(self, rest: bytes) -> None:
        """Parse a request that asks for another protocol once more, as the last one, without that.

        For the parser such a request ends with its head, so it would take the body for the next
        request. A server may ignore `Upgrade` (RFC 9110, 7.8), and there are clients that send it
        with every request.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            return self.refuse(HTTPStatus.NOT_IMPLEMENTED, NO_TUNNEL)
        self._unsupported_upgrade_warning()
        kept = [one for one in self.headers if one[0] != b"upgrade"]
        lines = [b"%b: %b\r\n" % one for one in (*kept, (b"connection", b"close"))]
        version = self.parser.get_http_version().encode()
        line = b"%b %b HTTP/%b\r\n" % (method, self.url, version)
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return self._feed(b"".join((line, *lines, b"\r\n", rest)))

    def _has_too_many_headers(self) -> bool:
        return self.headers is not None and len(self.headers) > self._limits.head_lines  # pyright: ignore[reportUnnecessaryComparison]

    def _refuse_headers(self) -> None:
        self.refuse(TOO_LARGE, TOO_LONG.format("head_lines"))

    @property
    def _has_enough(self) -> bool:
        return len(self.pipeline) >= MAX_PIPELINED

    @property
    def _is_pipelining(self) -> bool:
        return bool(self.pipeline) or super()._is_pipelining

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        self._expect(Phase.HEAD, self._limits.head_seconds)

    def on_headers_complete(self) -> None:
        """Let the application have the request, and wait for its body."""
        if self._has_too_many_headers():
            self._refuse_headers()
            raise TooManyHeaders  # ends the parser's work
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self._body_left = body_length(self.scope) or 0
        if self._body_left > LARGE:
            self.cycle.transport = cast(Any, LingeringTransport(self.transport, self._close_later))
        self.headers = []  # what comes now are trailers: not the request's, and not more of them
        self._progress = True
        self._expect(Phase.BODY, self._limits.body_seconds)

    def on_body(self, body: bytes) -> None:
        """Note that the body goes on."""
        super().on_body(body)
        self._body_left -= len(body)
        self._progress = True

    def on_message_complete(self) -> None:
        """Note that the parser is at the end of a request."""
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self.headers = []
        self._progress = True
        self._phase = Phase.IDLE
        if self._ends_with_body:
            self._phase = Phase.REFUSED
            self.transport.close()
        elif self.cycle.response_complete:
            self._expect_next()

    def _close_later(self) -> None:
        """Close after the last answer; where a caller still sends its body, once that has come.

        To close at once would be to reset the connection, and the answer would be lost.
        """
        if self._phase is not Phase.BODY or PRINCIPAL not in self._noted:
            return self.transport.close()
        self._ends_with_body = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        return None
