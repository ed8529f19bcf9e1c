"""Pack `backend`: an application's users, and what runs beside them."""

from toolgate.gate.catalogue import Offer
from toolgate.packs.backend import operations, users


def offer() -> Offer:
    """What this pack brings along."""
    return Offer(tools=(*users.family.tools, *operations.family.tools))
