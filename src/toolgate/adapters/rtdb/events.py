"""The changes of a path as the database tells them: server-sent events.

A stream begins with the whole value. Where it ends or breaks, the caller asks for a new one, which
begins with the whole value again, so that nothing is missed.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from toolgate.adapters.rtdb.rest import NO_ANSWER, OK, Rest, read_json, refusal, stored_node
from toolgate.outbound.client import AddressPolicy
from toolgate.outbound.responses import FetchFailed, StreamedResponse
from toolgate.ports.documents import Json, StoreUnavailable
from toolgate.ports.tree_rules import Path, json_of

SILENT_SECONDS = 60.0
"""The database sends a keep-alive every 30 seconds."""
MAX_EVENT_BYTES = 32 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
MAX_REDIRECTS = 3
REDIRECTS = (301, 302, 307, 308)
DOMAINS = (".firebaseio.com", ".firebasedatabase.app")
"""The database sends a stream from one of its hosts to another; the token may go with it."""
LINE_END = re.compile(rb"\r\n|\n|\r")


class EventKind(StrEnum):
    """What an event tells."""

    PUT = "put"
    """The value at the path is now this one as a whole."""
    PATCH = "patch"
    """The values below the path are now these, by paths that begin there."""
    KEEP_ALIVE = "keep-alive"
    CANCEL = "cancel"
    """The rules no longer permit reading; the stream ends."""
    AUTH_REVOKED = "auth_revoked"
    """The access token is no longer valid; the stream ends."""


ENDS = (EventKind.CANCEL, EventKind.AUTH_REVOKED)


@dataclass(frozen=True, slots=True)
class TreeEvent:
    """One event of a stream."""

    kind: EventKind
    path: str = ""
    """Seen from the path of the stream; empty for that itself."""
    value: Json = None


async def stream(rest: Rest, path: Path) -> AsyncGenerator[TreeEvent]:
    """The events of a path; raises `StoreUnavailable` where the stream breaks."""
    url = rest.address(path, {})
    for _ in range(1 + MAX_REDIRECTS):
        headers = {"Accept": "text/event-stream", **await rest.authorization()}
        try:
            async with rest.outbound.stream(
                url, seconds=SILENT_SECONDS, address_policy=AddressPolicy.PROXIED, headers=headers
            ) as response:
                if response.status not in REDIRECTS:
                    async for event in _events(rest, response):
                        yield event
                    return
                url = _redirected(url, response.headers.get("location", ""))
        except FetchFailed as problem:
            raise StoreUnavailable(NO_ANSWER) from problem
    raise StoreUnavailable("Realtime Database redirects a stream too often.")


def _redirected(url: str, location: str) -> str:
    """Where a stream is to be had; only hosts of the same service are believed."""
    target = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(target)
    same = before.netloc == after.netloc
    hosts = (before.hostname or "", after.hostname or "")
    related = any(all(host.endswith(domain) for host in hosts) for domain in DOMAINS)
    if before.scheme != after.scheme or not (same or related):
        raise StoreUnavailable(f"Realtime Database redirects a stream to {after.netloc}.")
    return target


async def _events(rest: Rest, response: StreamedResponse) -> AsyncGenerator[TreeEvent]:
    if response.status != OK:
        raise refusal(rest.url, response.status, await _beginning(response.chunks))
    kind, data = "", list[str]()
    async for line in _lines(response.chunks):
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            continue
        event = _event(kind, "\n".join(data))
        kind, data = "", list[str]()
        if event is not None:
            yield event
            if event.kind in ENDS:
                return


def _event(kind: str, data: str) -> TreeEvent | None:
    """None for kinds that this protocol does not know."""
    match kind:
        case EventKind.PUT | EventKind.PATCH:
            told: Any = read_json(data.encode())
            if not isinstance(told, dict):
                raise StoreUnavailable("Realtime Database sent an event without data.")
            told = cast("dict[str, Any]", told)
            path = str(told.get("path", "")).strip("/")
            value: Any = told.get("data")
            if kind == EventKind.PUT:
                return TreeEvent(EventKind.PUT, path, json_of(stored_node(value)))
            changes = cast("dict[str, Json]", value or {})
            values = {key: json_of(stored_node(one)) for key, one in changes.items()}
            return TreeEvent(EventKind.PATCH, path, values)
        case EventKind.KEEP_ALIVE:
            return TreeEvent(EventKind.KEEP_ALIVE)
        case EventKind.CANCEL | EventKind.AUTH_REVOKED:
            reason: Any = None if data in ("", "null") else data
            return TreeEvent(EventKind(kind), value=reason)
        case _:
            return None


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """Lines without their ends; they may come in any pieces."""
    pieces, size, held = list[bytes](), 0, b""
    async for chunk in chunks:
        # A carriage return at the end of a piece may be half of a line's end.
        half = chunk.endswith(b"\r")
        *lines, last = LINE_END.split(held + (chunk[:-1] if half else chunk))
        held = b"\r" if half else b""
        for line in lines:
            yield b"".join([*pieces, line]).decode(errors="replace")
            pieces, size = list[bytes](), 0
        pieces.append(last)
        size += len(last)
        if size > MAX_EVENT_BYTES:
            raise StoreUnavailable(
                f"Realtime Database sent an event of more than {MAX_EVENT_BYTES:,} bytes."
            )


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_REFUSAL_BYTES:
            break
    return bytes(body)
