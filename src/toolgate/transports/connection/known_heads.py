"""HTTP connections that answer requests they know without going through ASGI.

A client sends the same request line and the same headers with nearly every call; only the body and
its length change. What such a head means was found out a moment ago, for the same place, by the
parser, the edge and MCP's front, and is the same this time (`heads.py`). Whatever is new, odd or in
pieces takes the ordinary way through uvicorn (docs/decisions/0017).
"""

import asyncio
import logging
from collections.abc import Coroutine, Hashable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from toolgate.gate.failures import origin
from toolgate.transports.asgi import LARGE, Scope
from toolgate.transports.connection.heads import (
    KNOWN_HEADS,
    RAW_HEAD,
    Head,
    Heads,
    JsonResponse,
    Pending,
    UnknownCredential,
)
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.limited import Phase

logger = logging.getLogger(__name__)

END = b"\r\n\r\n"
LENGTH_NAME_END = b"ength: "
LENGTH_NAME_START = (b"\r\nContent-L", b"\r\ncontent-l")
MAX_DIGITS = 7
MAX_HELD = LARGE
"""What is larger takes room, and the ordinary way."""
JSON = b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b\r\n"
CLOSE = b"connection: close\r\n"
RETRY = b"retry-after: %d\r\n"


class Connection(LimitedHttpTools):
    """A connection of a client, which sends one request after the other."""

    knows_heads = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._heads: Heads | None = self.app_state.get(KNOWN_HEADS)
        self._peer: Hashable = None
        self._raw_key: Hashable = None
        """The key of the head that is about to be parsed."""
        self._asked: Head | UnknownCredential | None = None
        """What is known of the last request that may be answered here."""
        self._incomplete: list[bytes] = []
        """A known request whose body is not complete yet."""
        self._missing = 0
        """How many bytes of it are still to come."""
        self._task: asyncio.Task[None] | None = None
        """The answer that is being made."""
        self._queued: list[bytes] = []
        """What came meanwhile."""
        self._default_headers: list[tuple[bytes, bytes]] | None = None
        self._default_lines = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Note where the client is."""
        super().connection_made(transport)
        self._peer = (self.client and self.client[0], self.scheme)

    def data_received(self, data: bytes) -> None:
        """Answer a request that is known; let uvicorn have every other."""
        if self._task is not None:
            self._queued.append(data)
            self.flow.pause_reading()
            return
        if self._incomplete:
            self._incomplete.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data, self._incomplete, self._phase = b"".join(self._incomplete), [], Phase.IDLE
        if not (
            self._phase is Phase.IDLE and self._heads and self._handle_known(self._heads, data)
        ):
            super().data_received(data)

    def _handle_known(self, heads: Heads, data: bytes) -> bool:
        """Whether this was, or is the begin of, a request that is known."""
        end = data.find(END) + len(END)
        found = _split_content_length(data[:end]) if end >= len(END) else None
        free = not self.flow.write_paused and (not self.cycle or self.cycle.response_complete)
        if found is None or not free:
            self._raw_key = None
            return False
        raw, length = found
        self._raw_key = key = (self._peer, raw)
        missing = end + length - len(data)
        known: Any = heads.recall(key)
        if known is None and not missing:  # a stranger's body is not waited for here
            known = heads.without_credential(key)
        self._asked = known
        if not known or not known.respond or length > MAX_HELD or missing < 0:
            return False
        if missing:
            self._incomplete, self._missing = [data], missing
            self._expect(Phase.BODY, self._limits.body_seconds)
            return True
        pending: Pending = known.respond(known, data[end:])
        if pending is None:
            return False
        if isinstance(pending, JsonResponse):
            self._write(pending)
        else:
            self._task = self.loop.create_task(self._respond_later(pending, data))
            self.tasks.add(self._task)
        return True

    async def _respond_later(
        self, pending: Coroutine[Any, Any, JsonResponse | None], data: bytes
    ) -> None:
        task, answer = self._task, None
        try:
            answer = await pending
        except BaseException as problem:
            self.transport.close()
            if not isinstance(problem, Exception):
                raise
            logger.error(  # noqa: TRY400 (a traceback may hold arguments)
                "a request could not be answered: %s", origin(problem)
            )
        finally:
            self._task = None
            self.tasks.discard(task)  # pyright: ignore[reportArgumentType]
        if answer is not None:
            self._write(answer)
        elif not self.transport.is_closing():
            super().data_received(data)  # it was not to be answered here after all
        if self._queued:
            self._read_queued()

    def _read_queued(self) -> None:
        """Look at what came meanwhile."""
        data, self._queued = b"".join(self._queued), []
        self.flow.resume_reading()
        if not self.transport.is_closing():
            self.data_received(data)

    def _write(self, response: JsonResponse) -> None:
        if self.transport.is_closing():
            return
        body, id = response.body, response.request_id.encode()
        more = CLOSE if self._closing else b""
        if response.retry_after:
            more += RETRY % response.retry_after
        head = JSON % (len(body), id, more)
        defaults = self.server_state.default_headers
        if defaults is not self._default_headers:  # made anew every second, for the date
            self._default_headers = defaults
            self._default_lines = b"".join(b"%b: %b\r\n" % one for one in defaults)
        self.transport.write(
            b"".join((STATUS_LINE[response.status], self._default_lines, head, body))
        )
        self.server_state.total_requests += 1
        self._deadline = self.loop.time() + self._keep_alive
        if self._caller is None:
            self._set_caller(self.caller)
        if self._closing:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Tell the application by what this head can be known again."""
        super().on_message_begin()
        scope: Scope = self.scope  # pyright: ignore[reportAssignmentType]
        scope[RAW_HEAD], self._raw_key = self._raw_key, None

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Hold no part of a request that is refused."""
        self._incomplete = []
        super().refuse(status, message)

    @property
    def caller(self) -> str | None:
        """Whose credential was accepted here; None for a stranger."""
        if self._caller is None and self._asked is not None and self._asked.principal is not None:
            return self._asked.principal.id
        return super().caller

    def _set_caller(self, caller: str | None) -> None:
        if caller is None:
            self._asked = None
        super()._set_caller(caller)

    @property
    def _has_request(self) -> bool:
        return self._task is not None or super()._has_request

    @property
    def _is_discarding(self) -> bool:
        return not self._incomplete and super()._is_discarding


def _split_content_length(head: bytes) -> tuple[bytes, int] | None:
    """A head without the number of its body's bytes, and that number; None if it cannot be told."""
    name_end = head.find(LENGTH_NAME_END)
    if head[name_end - len(LENGTH_NAME_START[0]) : name_end] not in LENGTH_NAME_START:
        return None
    at = name_end + len(LENGTH_NAME_END)
    after = head.find(b"\r", at)
    digits = head[at:after]
    if not digits.isdigit() or len(digits) > MAX_DIGITS:
        return None
    return head[:at] + head[after:], int(digits)
