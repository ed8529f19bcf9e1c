"""Whether an address is one of a person who can be mailed, check by check."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from toolgate.packs.backend.marketing.addresses import Address, address_of, base_of
from toolgate.packs.backend.marketing.domains import (
    is_disposable,
    is_social_or_corporate,
    known,
    suggestion_for,
)

BAD_FORMAT = "Invalid email format"
Lookup = Callable[[Address], Awaitable[str | None]]
"""A check that asks somebody else: what is wrong, None where nothing is."""


class BadAddress(ValueError):
    """The address is refused; the message says why."""


@dataclass(frozen=True, slots=True)
class Validation:
    """An address that passed, and what each check said of it."""

    address: Address
    checks: dict[str, dict[str, Any]]


def parsed(text: str) -> Address:
    """The address; raises `BadAddress` where its format is not valid."""
    address = address_of(text)
    if address is None:
        raise BadAddress(BAD_FORMAT)
    return address


@dataclass(frozen=True, slots=True)
class Validator:
    """Checks addresses; those that ask the network only where settings switch them on."""

    dns: Lookup | None = None
    mailbox: Lookup | None = None

    async def check(self, text: str, *, format_only: bool = False) -> Validation:
        """Check an address; raises `BadAddress` with the first thing that is wrong."""
        address = parsed(text)
        checks: dict[str, dict[str, Any]] = {"format": {"valid": True}}
        if format_only:
            return Validation(address, checks)
        # Thousands of domains are read the first time.
        if problem := await anyio.to_thread.run_sync(_problem, address):
            raise BadAddress(problem)
        checks |= {name: {"valid": True} for name in ("disposable", "corporate", "localPart")}
        meant = suggestion_for(address.domain)
        checks["typo"] = {"valid": meant is None}
        if meant:
            checks["typo"]["suggestion"] = f"{address.local}@{meant}"
        for name, look in (("dns", self.dns), ("mailbox", self.mailbox)):
            if look is not None:
                if problem := await look(address):
                    raise BadAddress(problem)
                checks[name] = {"valid": True}
        return Validation(address, checks)


def _problem(address: Address) -> str | None:
    if is_disposable(address.domain):
        return f"Disposable email domain not allowed: {address.domain}"
    if is_social_or_corporate(address.domain):
        return f"Corporate/social-media domain not allowed: {address.domain}"
    plain = base_of(address.local).replace(".", "").replace("-", "").replace("_", "")
    if plain in known("blocked_local_parts"):
        return f"Blocked email local part: {address.local}"
    return None
