"""Removes blobs that belong to no artifact.

A blob is written before its row, and the row of a replaced artifact forgets its blob. So a blob
without a row is one of a call that failed, of one that is not done yet, or one that was replaced.
Which blobs have a row is asked for blobs that are old enough: a call ends long before, so what has
no row by then will never have one.
"""

import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import anyio

from toolgate.packs.orchestrator.artifacts.store import Artifacts
from toolgate.ports.blobs import Blobs
from toolgate.throttled_log import ThrottledLog

GRACE_SECONDS = 3600.0
"""Far longer than a call takes, and than clocks differ."""
FIRST_SECONDS = 5.0
"""So that a command that is over by then does not look at every blob."""
EVERY_SECONDS = 3600.0
PAUSE_SECONDS = 0.05
"""After each page, so that a sweep is never in the way."""
SETTLE_SECONDS = 15.0
"""How long a replaced blob stays for those who are reading it."""
MAX_REPLACED = 10_000
"""Blobs that are remembered as replaced; a sweep finds the others."""

logger = logging.getLogger(__name__)


class Reaper:
    """Removes the blobs of one pack that nobody needs."""

    def __init__(
        self,
        blobs: Blobs,
        artifacts: Artifacts,
        folder: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._blobs = blobs
        self._artifacts = artifacts
        self._folder = folder
        """Only blobs below it are looked at."""
        self._clock = clock
        self._replaced: deque[tuple[float, str]] = deque(maxlen=MAX_REPLACED)
        self._log = ThrottledLog(logger)

    def remove_later(self, blob: str) -> None:
        """Remove a blob soon, if its artifact is then known to have another one."""
        self._replaced.append((self._clock() + SETTLE_SECONDS, blob))

    async def run(self) -> None:
        """Sweep now and then, and remove what was replaced, until this is cancelled."""
        await anyio.sleep(FIRST_SECONDS)
        while True:
            await self._try(self.sweep, asks=True)
            ends = self._clock() + EVERY_SECONDS
            while self._clock() < ends:
                await anyio.sleep(SETTLE_SECONDS / 3)
                await self._try(self.remove_replaced)

    async def sweep(self) -> int:
        """Remove every old blob without a row; how many there were."""
        before = self._clock() - GRACE_SECONDS
        removed = await self._blobs.remove_unfinished(before)
        async for page in self._blobs.pages():
            old = [one.name for one in page if one.modified < before]
            removed += await self._remove([name for name in old if name.startswith(self._folder)])
            await anyio.sleep(PAUSE_SECONDS)
        return removed

    async def remove_replaced(self) -> int:
        """Remove the replaced blobs that nobody reads any more; how many there were."""
        now, due = self._clock(), list[str]()
        while self._replaced and self._replaced[0][0] <= now:
            due.append(self._replaced.popleft()[1])
        return await self._remove(due)

    async def _remove(self, blobs: Sequence[str]) -> int:
        if not blobs:
            return 0
        kept = await self._artifacts.kept(blobs)
        unneeded = [name for name in blobs if name not in kept]
        for name in unneeded:
            await self._blobs.delete(name)
        return len(unneeded)

    async def _try(self, work: Callable[[], Awaitable[int]], *, asks: bool = False) -> None:
        """Log how it ends; where the store was not asked, it may still fail."""
        try:
            removed = await work()
        except Exception as problem:
            self._log.record("blobs without an artifact could not be removed: %s", problem)
        else:
            if removed or asks:
                self._log.end("blobs without an artifact are removed again")
