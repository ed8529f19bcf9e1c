"""Whether a call would be answered: what every call needs is tried, seldom and never for long."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from toolgate.db.outages import describe
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
"""How long a part may take to answer before it counts as failing."""
AGAIN_SECONDS = 1.0
"""How soon a part that failed is tried again."""


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """Something that every call needs."""

    part: str
    """Its name, for everybody who asks: it says nothing of where and what exactly."""
    run: Callable[[], Awaitable[None]]
    """Raises when it does not work."""
    good_for: float = 1.0
    """How many seconds a success is believed, however often somebody asks."""


class Readiness:
    """The state of every part, tried when somebody asks and the last answer is too old.

    A check that hangs, such as one of a database that is frozen, is neither waited for nor begun a
    second time.
    """

    def __init__(
        self, checks: Sequence[ReadinessCheck], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._parts = [_Part(check, clock) for check in checks]
        self._log = ThrottledLog(logger)

    async def failing(self) -> list[str]:
        """The names of the parts that do not work; none when calls are answered."""
        running = {task: part for part in self._parts if (task := part.tried())}
        if running:
            _, silent = await asyncio.wait(running, timeout=ANSWER_SECONDS)
            for task in silent:
                running[task].is_silent()
        broken = [part for part in self._parts if part.problem is not None]
        if broken:
            why = dict.fromkeys(f"{part.check.part}: {part.problem}" for part in broken)
            self._log.record("not ready: %s", "; ".join(why))
        else:
            self._log.end("ready again")
        return sorted({part.check.part for part in broken})


class _Part:
    def __init__(self, check: ReadinessCheck, clock: Callable[[], float]) -> None:
        self.check = check
        self.problem: str | None = None
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._again = float("-inf")
        self._silent = False

    def tried(self) -> asyncio.Task[None] | None:
        """The check to wait for, begun now if it is time; None where there is nothing to expect."""
        if self._task is None and self._clock() >= self._again:
            self._task = asyncio.create_task(self._try())
        return None if self._silent else self._task

    def is_silent(self) -> None:
        """Wait for the check no longer; it goes on by itself."""
        if self._task is not None:
            self.problem = f"no answer within {ANSWER_SECONDS:g} s"
            self._silent = True

    async def _try(self) -> None:
        try:
            await self.check.run()
            self.problem, good_for = None, self.check.good_for
        except Exception as error:
            self.problem, good_for = describe(error), AGAIN_SECONDS
        self._again = self._clock() + good_for
        self._task, self._silent = None, False
