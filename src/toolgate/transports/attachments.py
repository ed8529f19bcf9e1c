"""Attachments over HTTP: base64 in JSON, or the bytes alone to who asks for them.

What kind of bytes they are may be what a stranger once said, so browsers are told to neither guess,
show nor run them. They go out in pieces, each when the client has taken those before it, so that
the room they take is given back only when all but the last are on their way.
"""

import re
from binascii import b2a_base64
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import quote

import orjson

from toolgate.gate.attachments import OCTETS, Attachment
from toolgate.gate.outcomes import Attached, Outcome
from toolgate.gate.unsent import Lease
from toolgate.transports.asgi import JSON, Headers, Message, Scope, Send, header, send

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
REFUSED = re.compile(r";[ \t]*q=0(\.0*)?[ \t]*(;|$)", re.IGNORECASE)
"""What a client says of a media type that it does not want (RFC 9110, 12.4.2)."""


async def send_attached(scope: Scope, to: Send, outcome: Outcome) -> None:
    """Answer with an attachment as the request's `Accept` says; JSON unless it names another."""
    assert outcome.attached is not None
    attached = outcome.attached
    attachment = attached.attachment
    if not _wants_bytes(header(scope, b"accept") or "", attachment.content_type):
        return await send_in_json(to, attached.body_with(PLACE_IN_JSON), attached, [VARY])
    content = (b"content-type", attachment.content_type.encode())
    named = (b"content-disposition", _disposition(attachment).encode())
    with attached.lease or nullcontext():
        await send(in_pieces(to), 200, attached.data, [named, *UNTRUSTED], content=content)


async def send_in_json(to: Send, response: Any, attached: Attached, headers: Headers = ()) -> None:
    """Answer with JSON that has `PLACE_IN_JSON` in it, and base64 there."""
    with attached.lease or nullcontext():
        before, _, after = orjson.dumps(response).partition(PLACE)
        before, data, after = before + b'"', attached.data, b'"' + after
        length = len(before) + (len(data) + 2) // 3 * 4 + len(after)
        start = [JSON, (b"content-length", b"%d" % length), *headers]
        await to({"type": "http.response.start", "status": 200, "headers": start})
        await to({"type": "http.response.body", "body": before, "more_body": True})
        for at in range(0, len(data), PIECE_BYTES):
            piece = b2a_base64(data[at : at + PIECE_BYTES], newline=False)
            await to({"type": "http.response.body", "body": piece, "more_body": True})
        await to({"type": "http.response.body", "body": after})


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
