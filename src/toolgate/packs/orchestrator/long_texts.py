"""Texts that are long to examine: a window at a time, in a thread, one after the other.

A search for a pattern holds the interpreter until it ends, in whichever thread: nothing else runs
meanwhile. So each search is in a window of a text, and two threads examine: one the large texts,
one all others, which so never wait behind a large one. A call that waits holds a turn of the gate,
so each caller has few here at once.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from toolgate.gate.errors import RateLimited
from toolgate.gate.turns import Turns

MAX_AT_ONCE = 4 * 1024
"""Characters that are examined on the event loop, in about a millisecond."""
WINDOW = 4 * 1024
OVERLAP = 1024
"""How far a match may reach beyond the window that it begins in."""
LARGE = 32 * 1024
"""Characters from which on a text waits for other large ones."""
MAX_OF_CALLER = 4
"""Examinations of one caller that run or wait."""
MAX_TOGETHER = 24
"""Those of all callers: far fewer than the calls that the gate lets run at once."""
RETRY_AFTER = 1

Result = TypeVar("Result")


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Where a pattern matches, like its `finditer`; of a longer match, what `OVERLAP` leaves."""
    position = 0
    while position < len(text):
        following = position + WINDOW
        # The text is not cut, so a pattern sees what stands before the window.
        for found in pattern.finditer(text, position, following + OVERLAP):
            if found.start() >= following:
                break
            yield found
            following = max(following, found.end())
        position = following


class Examiner:
    """Examines in threads, caller by caller; more than a few at once of one are refused."""

    def __init__(self) -> None:
        self._large, self._others = Turns(1), Turns(1)
        self._threads = CapacityLimiter(2)
        self._asked: Counter[str] = Counter()
        """By caller: what runs and what waits."""

    async def run(self, caller: str, size: int, work: Callable[[], Result]) -> Result:
        """Examine once it is this caller's turn; raises `RateLimited`."""
        if self._asked[caller] >= MAX_OF_CALLER or self._asked.total() >= MAX_TOGETHER:
            raise _too_many()
        self._asked[caller] += 1
        try:
            return await self._in_turn(self._large if size > LARGE else self._others, caller, work)
        finally:
            self._asked[caller] -= 1
            if not self._asked[caller]:
                del self._asked[caller]

    async def _in_turn(self, turns: Turns, caller: str, work: Callable[[], Result]) -> Result:
        if turns.free:
            turns.free -= 1
        else:
            await turns.wait(caller)
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        finally:
            turns.release(caller)


_examiner = RunVar[Examiner]("toolgate_examiner")


async def examine(caller: str, size: int, work: Callable[[], Result]) -> Result:
    """What comes of examining so many characters for a caller; in a thread, unless they are few."""
    if size <= MAX_AT_ONCE:
        return work()
    try:
        examiner = _examiner.get()
    except LookupError:
        examiner = Examiner()
        _examiner.set(examiner)
    return await examiner.run(caller, size, work)


def _too_many() -> RateLimited:
    message = (
        f"Too many at once: {MAX_OF_CALLER} long texts of a caller, and {MAX_TOGETHER} of all, "
        f"are examined at a time. Send one after the other, or try again in {RETRY_AFTER} s."
    )
    return RateLimited(message, retry_after=RETRY_AFTER)
