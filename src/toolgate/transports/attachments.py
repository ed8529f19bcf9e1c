"""Attachments over HTTP: base64 in JSON, or the bytes alone to who asks for them.

What kind of bytes they are may be what a stranger once said, so browsers are told to neither guess,
show nor run them. They go out in pieces, each when the client has taken those before it, so that
the room they take is given back only when all but the last are on their way.
"""

import logging
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from typing import Any
from urllib.parse import quote

import orjson
import pybase64

from toolgate.gate.attachments import OCTETS, Attachment, Pieces
from toolgate.gate.outcomes import Attached, Outcome
from toolgate.gate.unsent import Lease
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.asgi import JSON, Headers, Message, Scope, Send, header

logger = logging.getLogger(__name__)

VARY = (b"vary", b"Accept")
UNTRUSTED = [
    VARY,
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
]
PIECE_BYTES = 48 * 1024
"""A multiple of three, so that pieces of base64 can be put together."""
PLACE = b"\0"
"""Where base64 goes in JSON: orjson escapes it wherever else it may be."""
PLACE_IN_JSON = orjson.Fragment(PLACE)
UNSENT = "toolgate.unsent"
REFUSED = re.compile(r';[ \t]*q[ \t]*=[ \t]*"?0+(\.0*)?"?[ \t]*(;|$)', re.IGNORECASE)
"""What a client says of a media type that it does not want (RFC 9110, 12.4.2): neither white space
around the sign nor quotes belong there, but what they mean is plain."""


async def send_attached(scope: Scope, to: Send, outcome: Outcome) -> None:
    """Answer with an attachment as the request's `Accept` says; JSON unless it names another."""
    assert outcome.attached is not None
    attached = outcome.attached
    attachment = attached.attachment
    if not _wants_bytes(header(scope, b"accept") or "", attachment.content_type):
        return await send_in_json(to, attached.body_with(PLACE_IN_JSON), attached, [VARY])
    content = (b"content-type", attachment.content_type.encode())
    named = (b"content-disposition", _disposition(attachment).encode())
    length = (b"content-length", b"%d" % attachment.size)
    async with _sending(to, attached, [content, length, named, *UNTRUSTED]) as pieces:
        async for piece in pieces:
            await to({"type": "http.response.body", "body": bytes(piece), "more_body": True})
        await to({"type": "http.response.body", "body": b""})


async def send_in_json(to: Send, response: Any, attached: Attached, headers: Headers = ()) -> None:
    """Answer with JSON that has `PLACE_IN_JSON` in it, and base64 there."""
    before, _, after = orjson.dumps(response).partition(PLACE)
    before, after = before + b'"', b'"' + after
    length = len(before) + (attached.attachment.size + 2) // 3 * 4 + len(after)
    start = [JSON, (b"content-length", b"%d" % length), *headers]
    async with _sending(to, attached, start) as pieces:
        await to({"type": "http.response.body", "body": before, "more_body": True})
        async for piece in pieces:
            encoded = pybase64.b64encode(piece)
            await to({"type": "http.response.body", "body": encoded, "more_body": True})
        await to({"type": "http.response.body", "body": after})


@asynccontextmanager
async def _sending(to: Send, attached: Attached, headers: Headers) -> AsyncGenerator[Pieces]:
    """Begin a response; the attachment's bytes, to be sent.

    One that cannot be read to its end leaves the response incomplete, and the server then closes
    the connection: the length that was announced tells the client.
    """
    with attached.lease or nullcontext():
        async with aclosing(_cut(attached)) as pieces:
            await to({"type": "http.response.start", "status": 200, "headers": [*headers]})
            try:
                yield pieces
            except StoreUnavailable as problem:
                logger.warning("an attachment could not be sent to its end: %s", problem)


async def _cut(attached: Attached) -> Pieces:
    """The bytes in pieces that all but the last have the same length."""
    if attached.pieces is None:
        for at in range(0, len(attached.data), PIECE_BYTES):
            yield attached.data[at : at + PIECE_BYTES]
        return
    left = b""
    async with aclosing(attached.pieces) as given:
        async for piece in given:
            whole = memoryview(left + piece) if left else memoryview(piece)
            end = len(whole) - len(whole) % PIECE_BYTES
            for at in range(0, end, PIECE_BYTES):
                yield whole[at : at + PIECE_BYTES]
            left = bytes(whole[end:])
    if left:
        yield left


def in_pieces(to: Send) -> Send:
    """Send what is long in pieces; the server takes each when the client has taken others."""

    async def cut(message: Message) -> None:
        body: bytes = message.get("body", b"")
        at, more = 0, message.get("more_body", False)
        while len(body) - at > PIECE_BYTES:
            piece = body[at : at + PIECE_BYTES]
            await to({"type": "http.response.body", "body": piece, "more_body": True})
            at += PIECE_BYTES
        rest = {**message, "body": body[at:], "more_body": more} if at else message
        await to(rest)

    return cut


class Unsent:
    """What the answer to a request that somebody else sends takes room for."""

    def __init__(self) -> None:
        self._leases: list[Lease] = []
        self._sent = False

    def hold(self, lease: Lease) -> None:
        """Give the room back when the answer is sent."""
        if self._sent:
            lease.release()
        else:
            self._leases.append(lease)

    def close(self) -> None:
        """Give all of it back."""
        self._sent = True
        while self._leases:
            self._leases.pop().release()


@contextmanager
def held_until_sent(scope: Scope) -> Generator[None, None, None]:
    """Keep the room for what `hold` is told of until the answer to this request is sent."""
    scope[UNSENT] = unsent = Unsent()
    try:
        yield
    finally:
        unsent.close()


def hold(scope: Scope, attached: Attached) -> None:
    """Keep the room of an attachment until the answer to this request is sent."""
    unsent: Unsent | None = scope.get(UNSENT)
    if unsent is not None and attached.lease is not None:
        unsent.hold(attached.lease)


def _wants_bytes(accept: str, content_type: str) -> bool:
    wanted = {
        one.partition(";")[0].strip().lower()
        for one in accept.split(",")
        if not REFUSED.search(one)
    }
    kind = content_type.partition(";")[0].lower()
    return "application/json" not in wanted and not wanted.isdisjoint({OCTETS, kind})


def _disposition(attachment: Attachment) -> str:
    """The name as RFC 6266 has it; there is neither a quote nor a backslash in it."""
    name = attachment.file_name
    if name.isascii():
        return f'attachment; filename="{name}"'
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"
