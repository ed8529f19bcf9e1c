"""Looks credentials up for callers who are not known yet: a few wrong ones a minute from one peer.

Past that limit a credential is looked up only if this process has seen it to be good, from the same
peer, before. So guessing does not go on behind the limit, and who works from the same address keeps
working (docs/decisions/0023).
"""

from collections.abc import Collection

from toolgate.gate.errors import RateLimited
from toolgate.gate.limits import Limits
from toolgate.identity.credentials import Credentials, InsufficientScope, Known
from toolgate.identity.oauth import opaque

PURPOSE = "credential"
MOST_REMEMBERED = 10_000

Seen = tuple[str, bytes]
"""A peer, and the digest of a credential that came from it."""


class Guesses:
    """Credentials, with a limit on wrong ones."""

    def __init__(self, credentials: Credentials, limits: Limits) -> None:
        self._credentials = credentials
        self._limits = limits
        self._good: dict[Seen, None] = {}
        self._wrong: dict[Seen, None] = {}
        """A client that repeats one wrong credential guesses only once."""

    async def identify(
        self, credential: str, resources: Collection[str], peer: str
    ) -> Known | None:
        """What is known of a credential, as `Credentials.identify` says it.

        Raises `RateLimited` where too many wrong ones came from this peer.
        """
        seen = (peer, opaque.digest(credential))
        most, strangers = self._limits.bounds.guesses_per_minute, self._limits.strangers
        if seen not in self._good:
            await strangers.check(PURPOSE, peer, most)
        try:
            known = await self._credentials.identify(credential, resources)
        except InsufficientScope:
            _remember(self._good, seen)
            raise
        if known is not None:
            _remember(self._good, seen)
            return known
        self._good.pop(seen, None)
        if seen not in self._wrong:
            await self._count(seen, peer, most)
        return None

    async def _count(self, seen: Seen, peer: str, most: int) -> None:
        try:
            await self._limits.strangers.admit(PURPOSE, peer, most)
        except RateLimited:
            return  # the limit was reached meanwhile; the next one is refused
        _remember(self._wrong, seen)


def _remember(table: dict[Seen, None], seen: Seen) -> None:
    """Keep it; the oldest go where there are too many."""
    if seen not in table and len(table) >= MOST_REMEMBERED:
        del table[next(iter(table))]
    table[seen] = None
