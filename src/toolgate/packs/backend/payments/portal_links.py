"""Links to the portal page of the embedded ledger: signed, and good for a while.

Whoever has the link may do what the page offers, as with the link of any processor; but never more
than whoever made it.
"""

import secrets
import time
from dataclasses import dataclass

from toolgate.gate.cursors import Cursors
from toolgate.gate.errors import InvalidArguments
from toolgate.packs.backend.pack import ROUTES

PATH = f"{ROUTES}/payments/portal/{{link}}"
LISTING = ("payments.portal", "2")
"""What is signed; with another number where a link says more than before."""
MAX_CHARACTERS = 3000


@dataclass(frozen=True, slots=True)
class PortalLink:
    """What a link says."""

    uid: str
    return_url: str
    may_cancel: bool
    """Whether whoever made it may cancel; if not, its holder may look and do nothing."""


@dataclass(frozen=True, slots=True)
class PortalLinks:
    """Makes and reads links."""

    base_url: str
    cursors: Cursors
    minutes: int

    def make(self, link: PortalLink) -> str:
        """A new one for a user."""
        until = int(time.time()) + self.minutes * 60
        said = (link.uid, link.return_url, link.may_cancel, until, secrets.token_hex(8))
        signed = self.cursors.make(LISTING, said)
        return self.base_url + PATH.format(link=signed)

    def read(self, link: str) -> PortalLink | None:
        """What it says; None where it is not one of ours, or too old."""
        if len(link) > MAX_CHARACTERS:
            return None
        try:
            uid, return_url, may_cancel, until, _ = self.cursors.read(LISTING, link) or []
        except InvalidArguments:
            return None
        return PortalLink(uid, return_url, may_cancel) if until > time.time() else None
