"""Keys for new children that sort by the time they were made, in the form Firebase's clients use.

Eight characters of time in milliseconds, twelve of chance. Keys of one process rise strictly,
also within a millisecond and when the clock is set back.
"""

import secrets
import threading
import time
from collections.abc import Callable

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""64 characters in the order of their bytes."""
CHANCE_BITS = 72
STEP_BITS = 40
"""Within a millisecond the next key is so far from the last that nobody can guess it."""


class PushIds:
    """Makes keys, for any number of threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._time = 0
        self._chance = 0

    def __call__(self) -> str:
        """A key that sorts after every one before."""
        now = int(self._clock() * 1000)
        with self._lock:
            if now > self._time:
                self._time, self._chance = now, secrets.randbits(CHANCE_BITS)
            else:
                self._chance += 1 + secrets.randbits(STEP_BITS)
            if self._chance >> CHANCE_BITS:
                self._time, self._chance = self._time + 1, secrets.randbits(CHANCE_BITS)
            return _digits(self._time, 8) + _digits(self._chance, 12)


def _digits(number: int, count: int) -> str:
    return "".join(ALPHABET[number >> shift & 63] for shift in range(6 * (count - 1), -1, -6))


push_id = PushIds()
