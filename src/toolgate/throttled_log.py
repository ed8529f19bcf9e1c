"""A log message for something that may happen thousands of times a second.

It is logged when it first happens, then at most once a minute with the number of times it happened
since, and once more when it is over.
"""

import logging
import time
from collections.abc import Callable


class ThrottledLog:
    """One kind of event in the log, however often it happens."""

    def __init__(
        self,
        logger: logging.Logger,
        *,
        seconds: float = 60.0,
        level: int = logging.WARNING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._seconds = seconds
        self._level = level
        self._clock = clock
        self._since: float | None = None
        """When it began; None while it does not happen."""
        self._next = 0.0
        """When it may be logged again."""
        self._total = 0
        self._unlogged = 0
        self._last: tuple[str, tuple[object, ...]] = "", ()

    @property
    def active(self) -> bool:
        """Whether it has happened since it was last said to be over."""
        return self._since is not None

    def record(
        self, message: str, *args: object, exc_info: BaseException | bool | None = None
    ) -> None:
        """Note that it happened; logged the first time, then once in each period."""
        now = self._clock()
        if self._since is None:
            self._since = now
        self._total += 1
        if now < self._next:
            self._unlogged += 1
            self._last = message, args
            return
        self._log(message, args, exc_info)
        self._next = now + self._seconds

    def flush(self) -> None:
        """Log what was held back, if its period has ended; for callers with a timer."""
        if self._unlogged and self._clock() >= self._next:
            message, args = self._last
            self._unlogged -= 1
            self._log(message, args, None)
            self._next = self._clock() + self._seconds

    def end(self, message: str, *args: object, level: int | None = None) -> None:
        """Log that it is over, how often it happened and for how long; nothing if it did not."""
        if self._since is None:
            return
        summary = message + " (%d times in %.0f s)"
        level = self._level if level is None else level
        self._logger.log(level, summary, *args, self._total, self._clock() - self._since)
        self._since, self._next, self._total, self._unlogged = None, 0.0, 0, 0

    def _log(
        self, message: str, args: tuple[object, ...], exc_info: BaseException | bool | None
    ) -> None:
        if self._unlogged:
            message, args = message + " (and %d more times)", (*args, self._unlogged)
        self._unlogged = 0
        self._logger.log(self._level, message, *args, exc_info=exc_info)
