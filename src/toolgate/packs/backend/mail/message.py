"""A mail that is ready to be sent, and its bytes for one recipient."""

import base64
import binascii
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.utils import format_datetime

from toolgate.packs.backend.mail.addresses import Address

UNSUBSCRIBE = "https://unsubscribe.invalid/"
"""Stands in texts for the recipient's own link."""
LINE = "\r\n"
LINE_BREAK = re.compile(r"[\r\n\x00]")
MAX_HEADER_LINE = 76
LARGE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What all its recipients get; blind copies are recipients that no header names."""

    id: str
    """Unique; with the sender's domain it is the Message-ID."""
    sender: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()
    reply_to: Address | None = None
    subject: str
    html: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    categories: tuple[str, ...] = ()
    group: str | int | None = None
    date: datetime
    unsubscribe_page: str = ""
    """The link in texts for who has none of their own."""
    send_at: datetime | None = None
    """Not before, where the provider can hold it."""

    @property
    def message_id(self) -> str:
        """The Message-ID without its angle brackets."""
        return f"{self.id}@{self.sender.email.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who gets it, and that person's own link to unsubscribe."""

    address: Address
    field: str = "to"
    """Of `to`, `cc` and `bcc`."""
    unsubscribe: str | None = None


def personal_texts(message: Message, link: str | None) -> tuple[str, str]:
    """The HTML and the text with the recipient's own link."""
    link = link or message.unsubscribe_page
    return message.html.replace(UNSUBSCRIBE, link), message.text.replace(UNSUBSCRIBE, link)


def unsubscribe_headers(link: str | None) -> dict[str, str]:
    """RFC 8058: one request, without a page in between, and that person gets no more."""
    if link is None:
        return {}
    return {
        "List-Unsubscribe": f"<{link}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def mime_bytes(message: Message, recipient: Recipient) -> bytes:
    """The mail as SMTP takes it; made by hand, as campaigns send hundreds of thousands."""
    assert not LINE_BREAK.search(message.subject), "a header is one line"
    html, text = personal_texts(message, recipient.unsubscribe)
    boundary = f"toolgate-{secrets.token_hex(12)}"
    headers = {
        "From": message.sender.header(),
        "To": _listed(message.to),
        "Cc": _listed(message.cc),
        "Reply-To": message.reply_to.header() if message.reply_to else "",
        "Subject": _words(message.subject, "Subject"),
        "Date": format_datetime(message.date),
        "Message-ID": f"<{message.message_id}>",
        **message.headers,
        **unsubscribe_headers(recipient.unsubscribe),
        "MIME-Version": "1.0",
        "Content-Type": f'multipart/alternative; boundary="{boundary}"',
    }
    head = LINE.join(f"{name}: {value}" for name, value in headers.items() if value)
    return b"".join(
        [
            head.encode("ascii"),
            b"\r\n\r\n",
            _part(boundary, "plain", text),
            _part(boundary, "html", html),
            f"--{boundary}--\r\n".encode(),
        ]
    )


def _listed(addresses: tuple[Address, ...]) -> str:
    """One to a line: a header may not be longer than 998 characters."""
    return f",{LINE} ".join(one.header() for one in addresses)


def _words(text: str, name: str) -> str:
    if text.isascii() and len(text) + len(name) < MAX_HEADER_LINE and "=?" not in text:
        return text
    return Header(text, "utf-8", MAX_HEADER_LINE, name).encode(linesep=LINE)


def is_large(message: Message) -> bool:
    """Whether its bytes take long to make, and so are made in a thread."""
    return len(message.html) + len(message.text) > LARGE


def _part(boundary: str, kind: str, text: str) -> bytes:
    # Quoted-printable is read by people; of a million short lines it would be slow to send.
    encode, name = (_base64, "base64") if len(text) > LARGE else (_quoted, "quoted-printable")
    head = (
        f"--{boundary}{LINE}Content-Type: text/{kind}; charset=utf-8{LINE}"
        f"Content-Transfer-Encoding: {name}{LINE * 2}"
    )
    return head.encode() + encode(text) + LINE.encode()


def _quoted(text: str) -> bytes:
    lines = LINE.join(text.splitlines()) + LINE
    return binascii.b2a_qp(lines.encode(), istext=True)


def _base64(text: str) -> bytes:
    lines = text.replace(LINE, "\n").replace("\r", "\n").replace("\n", LINE) + LINE
    return base64.encodebytes(lines.encode()).replace(b"\n", LINE.encode())
