"""Counts calls within a minute, in this process.

A sliding window: what came in the minute before counts by the part of it that is still within
the last sixty seconds. The library that counts in Redis does the same; in memory its general
machinery cost a tenth of a whole call.
"""

import time
from collections.abc import Hashable

WINDOW = 60
OVERFLOW = "(overflow)"
"""The one key of all that come when the table is full."""


class WindowCounter:
    """How often something happened, by key.

    With `most_keys` the memory is bounded: keys that are new when the table of this minute is full
    share one count. Nobody's own count is dropped for them, so inventing keys undoes no limit.
    """

    def __init__(self, most_keys: int | None = None) -> None:
        self._most_keys = most_keys
        self._minute = 0
        self._counts: dict[Hashable, int] = {}
        """How often in this minute."""
        self._before: dict[Hashable, int] = {}
        """How often in the minute before."""

    def hit(self, key: Hashable, most: int, by: int = 1) -> float | None:
        """Count once more; or, where that is over `most`, the seconds to wait."""
        now = time.time()
        minute = int(now // WINDOW)
        if minute != self._minute:
            self._start_minute(minute)
        count = self._counts.get(key)
        if count is None:
            if self._most_keys is not None and len(self._counts) >= self._most_keys:
                key = self._shared_key(key, self._most_keys)
            count = self._counts.get(key, 0)
        before = self._before.get(key, 0)
        if count + int(before * (1 - now % WINDOW / WINDOW)) >= most:
            return _wait(most - count, before, now)
        if by:
            self._counts[key] = count + by
        return None

    def test(self, key: Hashable, most: int) -> float | None:
        """The seconds to wait where one more would be over `most`; nothing is counted."""
        return self.hit(key, most, by=0)

    def _shared_key(self, key: Hashable, most_keys: int) -> Hashable:
        """Which key to count under when the table is full; who was here before has some room."""
        is_known = key in self._before and len(self._counts) < 2 * most_keys
        return key if is_known else OVERFLOW

    def _start_minute(self, minute: int) -> None:
        """Begin another minute; what is older than the one before does not count any more."""
        self._before = self._counts if minute == self._minute + 1 else {}
        self._counts, self._minute = {}, minute


def _wait(spare: int, before: int, now: float) -> float:
    """Until enough of the minute before has passed, or else until this minute has."""
    left = WINDOW - now % WINDOW
    return left - spare / before * WINDOW if spare > 0 else left
