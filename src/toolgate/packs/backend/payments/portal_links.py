"""Links to the portal page of the embedded ledger: signed, and good for a while.

Whoever has the link may do what the page offers, as with the link of any processor.
"""

import secrets
import time
from dataclasses import dataclass

from toolgate.gate.cursors import Cursors
from toolgate.gate.errors import InvalidArguments
from toolgate.packs.backend.pack import ROUTES

PATH = f"{ROUTES}/payments/portal/{{link}}"
LISTING = ("payments.portal",)
MAX_CHARACTERS = 3000


@dataclass(frozen=True, slots=True)
class PortalLink:
    """What a link says."""

    uid: str
    return_url: str


@dataclass(frozen=True, slots=True)
class PortalLinks:
    """Makes and reads links."""

    base_url: str
    cursors: Cursors
    minutes: int

    def make(self, uid: str, return_url: str) -> str:
        """A new one for a user."""
        until = int(time.time()) + self.minutes * 60
        signed = self.cursors.make(LISTING, (uid, return_url, until, secrets.token_hex(8)))
        return self.base_url + PATH.format(link=signed)

    def read(self, link: str) -> PortalLink | None:
        """What it says; None where it is not one of ours, or too old."""
        if len(link) > MAX_CHARACTERS:
            return None
        try:
            uid, return_url, until, _ = self.cursors.read(LISTING, link) or []
        except InvalidArguments:
            return None
        return PortalLink(uid, return_url) if until > time.time() else None
