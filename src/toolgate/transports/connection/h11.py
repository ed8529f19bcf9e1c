"""uvicorn's connections with h11's parser, within limits: for where httptools is not installed."""

from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolgate.transports.asgi import ASGIApp, Message, Receive, Scope, Send, send_json
from toolgate.transports.connection.limited import NO_TUNNEL, TOO_LARGE, TOO_LONG, Limited, Phase

CLOSE = (b"connection", b"close")


class LimitedH11(Limited, H11Protocol):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A connection of a client, which sends one request after the other."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        limited = _limited(self.app, self._limits.head_lines)

        async def in_turn(scope: Scope, receive: Receive, send: Send) -> None:
            if self._caller is None:
                self._table.note_request(self)
            must_wait = self.flow.write_paused and self.has_credentials
            app = self.flow.in_turn(limited) if must_wait else limited
            await app(scope, receive, send)

        self.app: Any = in_turn

    def _parse(self, data: bytes) -> bool:
        before, last = self._phase, self.scope
        H11Protocol.data_received(self, data)
        if self._is_refused:
            return True
        phase, is_new = self._current_phase(), self.scope is not last
        if phase is Phase.HEAD and (is_new or before is not phase):
            self._expect(phase, self._limits.head_seconds)
        elif phase is Phase.BODY and is_new:
            self._expect(phase, self._limits.body_seconds)
        self._phase = phase
        if before is Phase.BODY and phase is Phase.IDLE and self.cycle.response_complete:
            self._expect_next()
        return is_new or phase is Phase.BODY  # h11 itself limits what stands between its parts

    @property
    def _has_enough(self) -> bool:
        return self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])

    def _close_after_answer(self) -> None:
        cycle = self.cycle
        if cycle is not None and cycle.keep_alive and not cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]
            cycle.default_headers = [*cycle.default_headers, CLOSE]
        super()._close_after_answer()

    def _current_phase(self) -> Phase:
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return Phase.BODY
        return Phase.HEAD if state is h11.IDLE and self.conn.trailing_data[0] else Phase.IDLE


def _limited(app: Any, most: int) -> ASGIApp:
    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope["headers"]) > most:
            await send_json(send, TOO_LARGE, {"error": TOO_LONG.format("head_lines")}, [CLOSE])
        elif scope["method"] == "CONNECT":
            await send_json(send, HTTPStatus.NOT_IMPLEMENTED, {"error": NO_TUNNEL}, [CLOSE])
        else:
            await app(scope, receive, _closing(send) if _asks_for_upgrade(scope) else send)

    return limited


def _asks_for_upgrade(scope: Scope) -> bool:
    """Whether a request asks for another protocol, which it does not get."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    options = b",".join(value for name, value in headers if name == b"connection").lower()
    named = any(name == b"upgrade" for name, _ in headers)
    return named and b"upgrade" in (one.strip() for one in options.split(b","))


def _closing(send: Send) -> Send:
    """Send an answer that is the last one."""

    async def closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), CLOSE]}
        await send(message)

    return closing
