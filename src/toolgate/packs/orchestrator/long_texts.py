"""Texts that are long to examine: a window at a time, in a thread, one after the other.

A search for a pattern holds the interpreter until it ends, in whichever thread: nothing else runs
meanwhile. So each search is in a window of a text, and only one thread examines at a time.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

MOST_AT_ONCE = 4 * 1024
"""Characters that are examined on the event loop, in about a millisecond."""
WINDOW = 4 * 1024
OVERLAP = 1024
"""How far a match may reach beyond the window that it begins in."""

Result = TypeVar("Result")
_examiner = RunVar[CapacityLimiter]("toolgate_examiner")


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


async def examine(size: int, work: Callable[[], Result]) -> Result:
    """What comes of examining so many characters; in a thread, unless they are few."""
    if size <= MOST_AT_ONCE:
        return work()
    try:
        examiner = _examiner.get()
    except LookupError:
        examiner = CapacityLimiter(1)
        _examiner.set(examiner)
    return await anyio.to_thread.run_sync(work, limiter=examiner)
