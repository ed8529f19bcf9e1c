"""Forgets the versions of skills that were deleted some time ago."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import anyio

from toolgate.packs.orchestrator.skills.store import KEPT_DAYS, Skills
from toolgate.throttled_log import ThrottledLog

FIRST_SECONDS = 10.0
"""So that a command that is over by then does not begin."""
EVERY_SECONDS = 3600.0
AT_ONCE = 100
"""Versions that one transaction forgets: others write between two."""
MAX_ROUNDS = 100
"""Transactions of one sweep; the next goes on."""
PAUSE_SECONDS = 0.05

logger = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class VersionRetention:
    """Keeps what is left of deleted skills from adding up."""

    def __init__(self, skills: Skills, clock: Callable[[], datetime] = _now) -> None:
        self._skills = skills
        self._clock = clock
        self._log = ThrottledLog(logger)

    async def run(self) -> None:
        """Sweep now and then, until this is cancelled."""
        await anyio.sleep(FIRST_SECONDS)
        while True:
            try:
                await self.sweep()
            except Exception as problem:
                self._log.record("versions of deleted skills could not be removed: %s", problem)
            else:
                self._log.end("versions of deleted skills are removed again")
            await anyio.sleep(EVERY_SECONDS)

    async def sweep(self) -> int:
        """Forget what is due, as far as one sweep goes; how many versions it were."""
        before = (self._clock() - timedelta(days=KEPT_DAYS)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        total = 0
        for _ in range(MAX_ROUNDS):
            number = await self._skills.forget_deleted(before, AT_ONCE)
            total += number
            if number < AT_ONCE:
                break
            await anyio.sleep(PAUSE_SECONDS)
        return total
