"""Addresses of mail: what is one, and how it is written in a header."""

import re
from dataclasses import dataclass
from email.header import Header
from email.utils import formataddr

MAX_ADDRESS = 254
MAX_LOCAL = 64
MAX_NAME = 500
MAX_LINE = 76
LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
"""What ends a line somewhere, and so would begin another header."""


class BadAddress(ValueError):
    """Not an address that mail can be sent to; the message says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where mail goes to or comes from; `checked_address` makes one from a stranger's text."""

    email: str
    name: str | None = None

    @property
    def key(self) -> str:
        """The same for addresses that differ in capitals only."""
        return self.email.lower()

    def header(self) -> str:
        """As a header has it, in ASCII; a long name goes over several lines."""
        written = formataddr((self.name or "", self.email))
        if len(written) <= MAX_LINE:
            return written
        words = Header(self.name or "", "utf-8", MAX_LINE).encode(linesep="\r\n")
        return f"{words}\r\n <{self.email}>" if self.name else written


def checked_address(email: str, name: str | None = None) -> Address:
    """An address that no header and no SMTP command can be smuggled in with."""
    email = email.strip(" ")
    if CONTROL.search(email) or (name and CONTROL.search(name)):
        raise BadAddress("has a line break or another control character")
    if name and len(name) > MAX_NAME:
        raise BadAddress(f"must have a name of at most {MAX_NAME} characters")
    local, at, domain = email.rpartition("@")
    if not at or len(email) > MAX_ADDRESS or len(local) > MAX_LOCAL or not LOCAL.fullmatch(local):
        raise BadAddress("is not an email address")
    try:
        ascii_domain = domain.encode("idna").decode() if not domain.isascii() else domain
    except UnicodeError:
        raise BadAddress("is not an email address") from None
    if not DOMAIN.fullmatch(ascii_domain.lower()):
        raise BadAddress("is not an email address")
    return Address(f"{local}@{ascii_domain}", (name or "").strip() or None)
