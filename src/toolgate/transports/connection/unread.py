"""How many bytes of answers wait in memory for clients that do not read them.

An answer is written whole, and a client may take its time to read it. Without a bound, one that
opens many connections and reads from none of them fills the memory. What a client reads at once is
never counted here: only a connection whose buffer runs full comes by.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

STRANGERS = ""
"""Who stands for all callers that are not known: together they hold what one may."""


class Droppable(Protocol):
    """A connection that can be closed."""

    def drop(self) -> None:
        """Close at once."""


class UnreadAnswers:
    """The answers that wait in one process.

    As with attachments, a caller holds more only while it has less than is left. Where that is not
    so, the caller that holds most loses the answer that has waited longest, so that who does not
    read pays for it. Where nobody holds any, an answer of any size may wait.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = self._left = most
        self._sizes: dict[Droppable, tuple[str, int]] = {}
        """By connection, those that wait longest first."""
        self._held: Counter[str] = Counter()
        self._log = ThrottledLog(logger, clock=clock)

    def hold(self, connection: Droppable, caller: str | None, size: int) -> None:
        """Note that a client has so many bytes to read; where these are too many, others go."""
        self.release(connection)
        caller = caller or STRANGERS
        while not self._has_room(caller, size):
            self._log.record(
                "Clients do not read their answers; past %d bytes together, or half of them of one "
                "caller (setting limits.unsent_attachment_bytes), those that wait longest are "
                "closed.",
                self._most,
            )
            self._drop_one()
        self._sizes[connection] = (caller, size)
        self._held[caller] += size
        self._left -= size

    def release(self, connection: Droppable) -> None:
        """Note that a client has read its answer, or is gone."""
        if held := self._sizes.pop(connection, None):
            caller, size = held
            self._left += size
            self._held[caller] -= size
            if not self._held[caller]:
                del self._held[caller]

    def flush(self) -> None:
        """Say how many were closed, if their minute is over."""
        self._log.flush()

    def _has_room(self, caller: str, size: int) -> bool:
        if not self._sizes:
            return True
        return size <= self._left and self._held[caller] < self._left

    def _drop_one(self) -> None:
        """Close what has waited longest of the answers of who holds most."""
        most = max(self._held, key=self._held.__getitem__)
        slowest = next(one for one, (caller, _) in self._sizes.items() if caller == most)
        self.release(slowest)
        slowest.drop()
