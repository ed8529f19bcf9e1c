"""One audit row for many calls that were refused alike: past a limit, or during an outage.

The first one has a row of its own, at once. Those that follow within a minute are
counted, and one row says how many they were, when the minute is over or the process stops.
"""

import time
from collections.abc import Hashable
from dataclasses import dataclass

from toolgate.gate.principal import Kind, Principal
from toolgate.gate.records import Ended, Record, record_of

WINDOW = 60.0
MOST_STRANGERS = 1000
"""Peers that are counted each by itself; all others together."""
SEVERAL = "(several)"
OTHERS = Principal(kind=Kind.ANONYMOUS, id="peer:others")


@dataclass(slots=True)
class _Summary:
    until: float
    last: Ended
    tool: str
    times: int = 0


class Summaries:
    """Counts what gets no row of its own, by caller."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Summary] = {}

    def add(self, ended: Ended) -> bool:
        """Count a call; True for the first of a minute, which is to be stored as it is."""
        _, _, principal, tool, allowed, _, error_type, *_ = ended
        key = (principal.audited, allowed, error_type)
        full = len(self._open) >= MOST_STRANGERS and principal.kind is Kind.ANONYMOUS
        if full and key not in self._open:
            key = (OTHERS.audited, allowed, error_type)
            ended = (*ended[:2], OTHERS, *ended[3:])
        summary = self._open.get(key)
        if summary is None:
            self._open[key] = _Summary(time.time() + WINDOW, ended, tool)
            return True
        summary.times += 1
        summary.last = ended
        if tool != summary.tool:
            summary.tool = SEVERAL
        return False

    def due(self, *, all_of_them: bool = False) -> list[Record]:
        """The rows of the minutes that are over."""
        now = time.time()
        over = [key for key, one in self._open.items() if all_of_them or one.until <= now]
        ended = [self._open.pop(key) for key in over]
        return [
            record_of(one.last)._replace(tool_name=one.tool, times=one.times)
            for one in ended
            if one.times
        ]
