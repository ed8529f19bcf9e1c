"""Attachments over plain HTTP: base64 in JSON, or the bytes alone to who asks for them.

What kind of bytes they are may be what a stranger once said, so browsers are told to neither guess,
show nor run them.
"""

from urllib.parse import quote

import orjson

from toolgate.gate.attachments import OCTETS, Attachment
from toolgate.gate.outcomes import Outcome, inline_attachment
from toolgate.transports.asgi import Scope, Send, header, send

VARY = (b"vary", b"Accept")
UNTRUSTED = [
    VARY,
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
]


async def send_attached(scope: Scope, to: Send, outcome: Outcome) -> None:
    """Answer with an attachment as the request's `Accept` says; JSON unless it names another."""
    assert outcome.attached is not None
    attachment, data = outcome.attached.attachment, outcome.attached.data
    if not _wants_bytes(header(scope, b"accept") or "", attachment.content_type):
        return await send(to, 200, orjson.dumps(inline_attachment(outcome)), [VARY])
    content = (b"content-type", attachment.content_type.encode())
    named = (b"content-disposition", _disposition(attachment).encode())
    await send(to, 200, data, [named, *UNTRUSTED], content=content)


def _wants_bytes(accept: str, content_type: str) -> bool:
    wanted = {one.partition(";")[0].strip().lower() for one in accept.split(",")}
    kind = content_type.partition(";")[0].lower()
    return "application/json" not in wanted and not wanted.isdisjoint({OCTETS, kind})


def _disposition(attachment: Attachment) -> str:
    """The name as RFC 6266 has it; there is neither a quote nor a backslash in it."""
    name = attachment.file_name
    if name.isascii():
        return f'attachment; filename="{name}"'
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"
