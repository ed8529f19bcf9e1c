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
        """The same for all spellings of the address."""
        return normalised(self.email)

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
    ascii_domain = _ascii(domain)
    if not DOMAIN.fullmatch(ascii_domain.lower()):
        raise BadAddress("is not an email address")
    return Address(f"{local}@{ascii_domain}", (name or "").strip() or None)


def normalised(email: str) -> str:
    """An address as it is compared and kept: where mail to it goes, in small letters.

    The only place that says which spellings are the same address. What mail is sent to and what
    consent is asked of differ otherwise, and an unsubscribe has no effect.
    """
    email = email.strip()
    if len(email) > MAX_ADDRESS:  # no mail goes there
        return email.lower()
    local, at, domain = email.rpartition("@")
    return f"{local}{at}{_ascii(domain) if at else domain}".lower()


def spellings(email: str) -> list[str]:
    """How records that others write may have an address: as given, in ASCII, in its own letters."""
    plain = normalised(email)
    local, at, domain = plain.rpartition("@")
    try:
        own = f"{local}{at}{domain.encode('ascii').decode('idna')}" if "xn--" in domain else plain
    except UnicodeError:
        own = plain
    return list(dict.fromkeys((email, email.strip().lower(), plain, own)))


def _ascii(domain: str) -> str:
    """A domain as the DNS has it, which knows one form of all letters; itself where it has none."""
    try:
        return domain if domain.isascii() else domain.encode("idna").decode()
    except UnicodeError:
        return domain
