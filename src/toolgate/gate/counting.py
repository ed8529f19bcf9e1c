"""Counts calls within a minute, in this process.

A sliding window: what came in the minute before counts by the part of it that is still within
the last sixty seconds. The library that counts in Redis does the same; in memory its general
machinery cost a tenth of a whole call.
"""

import time
from collections.abc import Hashable

WINDOW = 60
MOST_KEPT = 100_000


class Counter:
    """How often something happened, by key."""

    def __init__(self) -> None:
        self._windows: dict[Hashable, list[int]] = {}
        """Number of the minute, how often in it, how often in the one before."""

    def hit(self, key: Hashable, most: int) -> float | None:
        """Count once more; or, where that is over `most`, the seconds to wait."""
        now = time.time()
        minute = int(now // WINDOW)
        window = self._windows.get(key)
        if window is None or window[0] != minute:
            window = self._moved(key, window, minute)
        part_left = 1 - now % WINDOW / WINDOW
        if window[1] + int(window[2] * part_left) >= most:
            return self._wait(window, most, now)
        window[1] += 1
        return None

    def _moved(self, key: Hashable, window: list[int] | None, minute: int) -> list[int]:
        """The key's window for this minute."""
        if len(self._windows) >= MOST_KEPT:
            self._windows = {
                one: kept for one, kept in self._windows.items() if kept[0] >= minute - 1
            }
        before = window[1] if window is not None and window[0] == minute - 1 else 0
        moved = self._windows[key] = [minute, 0, before]
        return moved

    def _wait(self, window: list[int], most: int, now: float) -> float:
        """Until enough of the minute before has passed, or else until this minute has."""
        left = WINDOW - now % WINDOW
        spare = most - window[1]
        return left - spare / window[2] * WINDOW if spare > 0 else left
