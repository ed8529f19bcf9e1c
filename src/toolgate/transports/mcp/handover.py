"""What the short way does not take on standard input goes to the SDK, which decides the era.

The SDK looks at the first request of a client: it opens a connection of 2026-07-28 or of the
older protocol, once and for all. The short way may answer only what fits that, so it asks here
which protocol it may speak. The SDK is loaded when the first message for it comes.
"""

import importlib
import math
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import orjson

from toolgate.transports.jsonrpc import Id
from toolgate.transports.mcp.plain import CAPABILITIES, MODERN, PROTOCOL

PATIENCE = 5.0
"""Seconds for what the SDK still works on when the client has closed its end."""
ENDLESS = {"subscriptions/listen"}
OPENING = "toolgate:opening"


class Handover:
    """The messages for the SDK, and what is known of the connection they make."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.write = write
        self.protocol: str | None = MODERN
        """What the short way may speak now; nothing while the SDK has to decide."""
        self.answered = False
        """Whether the short way answered a request of 2026-07-28: that decides the era too."""
        self._lines, self._received = anyio.create_memory_object_stream[bytes](math.inf)
        self._wanted = anyio.Event()
        self._owed: set[Id] = set()
        self._settled = anyio.Event()
        self._decided = False
        self._greeting: Id | None = None
        self._version: str | None = None
        self._greeted = False

    def take(self, line: bytes) -> None:
        """Give a message to the SDK."""
        if not self._wanted.is_set():
            self._wanted.set()
            if self.answered:
                # The SDK has to hear what the short way has heard.
                self._lines.send_nowait(_first_request())
            else:
                self.protocol = None
        self._lines.send_nowait(line)

    def end(self) -> None:
        """No more messages come."""
        self._lines.close()
        self._wanted.set()

    async def run(self, module: str, *given: Any) -> None:
        """Load the SDK once it is needed, and serve until the messages end."""
        with self._received:
            await self._wanted.wait()
            if self._received.statistics().current_buffer_used:
                loaded: Any = await anyio.to_thread.run_sync(importlib.import_module, module)
                await loaded.serve(self, *given)

    async def next(self) -> bytes | None:
        """The next message; None when no more come and what came before is answered."""
        try:
            return await self._received.receive()
        except anyio.EndOfStream:
            with anyio.move_on_after(PATIENCE):
                while self._owed:
                    self._settled = anyio.Event()
                    await self._settled.wait()
            return None

    def note_request(self, id: Id, method: str, params: dict[str, Any] | None) -> None:
        """The SDK was given this request."""
        if method not in ENDLESS:
            self._owed.add(correlation_id(id))
        if not self._decided:
            self._decided = True
            meta = (params or {}).get("_meta")
            if method != "initialize" and isinstance(meta, dict) and PROTOCOL in meta:
                self.protocol = MODERN
        if method == "initialize" and self.protocol != MODERN:
            self._greeting, self._version, self._greeted = id, None, False
            self.protocol = None

    def note_notification(self, method: str, params: dict[str, Any] | None) -> None:
        """The SDK was given this notification."""
        if method == "notifications/initialized":
            self._greeted = True
            self._finish_handshake()
        if method == "notifications/cancelled":
            self._settle((params or {}).get("requestId"))

    def note_response(self, id: Id | None, result: dict[str, Any], line: bytes) -> None:
        """The SDK answers a request."""
        if id == OPENING:
            return self._settle(id)
        if id is not None and id == self._greeting:
            self._greeting, self._version = None, result.get("protocolVersion")
            self._finish_handshake()
        self.write(line)
        self._settle(id)

    def _finish_handshake(self) -> None:
        if self._greeted and self._version:
            self.protocol = self._version

    def _settle(self, id: Any) -> None:
        if isinstance(id, str | int):
            self._owed.discard(correlation_id(id))
            self._settled.set()


def correlation_id(id: Id) -> Id:
    """The id as the SDK compares it: "7" is 7."""
    if isinstance(id, str):
        try:
            return int(id)
        except ValueError:
            return id
    return id


def _first_request() -> bytes:
    """A request of 2026-07-28 that changes nothing; its answer is nobody's."""
    meta: dict[str, Any] = {PROTOCOL: MODERN, CAPABILITIES: {}}
    opening = {"jsonrpc": "2.0", "id": OPENING, "method": "server/discover"}
    return orjson.dumps({**opening, "params": {"_meta": meta}})
