"""How much may be asked for before a credential is known, counted by peer.

These limits are apart from those of callers: `limits.calls_per_minute = 0` does not switch them
off, and what callers without credentials do does not use up what a caller may.
"""

import time
from collections.abc import Awaitable
from typing import Protocol

from limits import RateLimitItemPerMinute
from limits.errors import StorageError

from toolgate.db.outages import Outage
from toolgate.gate.errors import RateLimited, Unavailable
from toolgate.gate.sliding_window import WindowCounter

MAX_KEYS = 100_000
"""Peers and purposes that are counted each by itself; further ones in a minute share one count."""


class SharedCounter(Protocol):
    """What is needed of the library that counts for several processes."""

    def hit(self, item: RateLimitItemPerMinute, *key: str, cost: int) -> Awaitable[bool]:
        """Count that many more; False where that is over the limit."""
        ...

    def test(self, item: RateLimitItemPerMinute, *key: str, cost: int) -> Awaitable[bool]:
        """Whether that many more are within the limit."""
        ...


class PeerLimits:
    """Counts by purpose and peer, in this process or in the store that several share.

    A purpose is a short name such as `oauth-register`; a peer is what `transports.peers` finds.
    """

    def __init__(self, shared: SharedCounter | None, outage: Outage) -> None:
        self._shared = shared
        self._outage = outage
        self._own = WindowCounter(MAX_KEYS)

    async def admit(self, purpose: str, peer: str, most: int) -> None:
        """Count one; raise `RateLimited` when it is more than `most` a minute."""
        await self._check(purpose, peer, most, count=True)

    async def check(self, purpose: str, peer: str, most: int, *, besides: int = 0) -> None:
        """Raise `RateLimited` when there were already `most` a minute; nothing is counted.

        `besides` are those under way that may still be counted.
        """
        if besides >= most:
            raise too_many(1)
        if self._shared is not None:
            return await self._check(purpose, peer, most, count=False, besides=besides)
        # At once: it is asked for every credential that was not seen a moment ago.
        wait = self._own.hit((purpose, peer), most - besides, by=0)
        if wait is not None:
            raise too_many(wait)

    async def _check(
        self, purpose: str, peer: str, most: int, *, count: bool, besides: int = 0
    ) -> None:
        if self._shared is None:
            key = (purpose, peer)
            wait = self._own.hit(key, most) if count else self._own.test(key, most - besides)
        else:
            cost = 1 + besides
            wait = await self._wait(self._shared, purpose, peer, most, count=count, cost=cost)
        if wait is not None:
            raise too_many(wait)

    async def _wait(
        self, shared: SharedCounter, purpose: str, peer: str, most: int, *, count: bool, cost: int
    ) -> float | None:
        item = RateLimitItemPerMinute(most)
        ask = shared.hit if count else shared.test
        try:
            within = await ask(item, "stranger", purpose, peer, cost=cost)
            if self._outage.on:
                self._outage.note_success()
        except StorageError as problem:
            self._outage.note_failure(problem)
            message = "Requests cannot be counted now, so none without credentials is answered."
            raise Unavailable(message) from None
        return None if within else 60 - time.time() % 60


def too_many(wait: float) -> RateLimited:
    """What somebody is told who was refused too often."""
    seconds = max(1, round(wait))
    message = f"Too many requests. Try again in {seconds} s."
    return RateLimited(message, retry_after=seconds)
