"""One audit row for many calls that were refused alike: past a limit, or during an outage.

The first one has a row of its own, at once. Those that follow within a minute are counted, and
every few seconds one row says how many there were since the last: no more than that is lost when
the process is killed. A row is never changed afterwards, so the sum of all is the number of calls.

Strangers can have as many addresses as they like, so what is refused to all of them together has a
limited number of rows a minute, too. Past it, nobody is refused anything more: only rows are saved.
"""

import heapq
import time
from collections.abc import Hashable
from dataclasses import dataclass

from toolgate.gate.audit_records import Ended, Record, record_of
from toolgate.gate.principal import Kind, Principal

WINDOW = 60.0
PART_SECONDS = 5.0
"""How often what is counted is stored."""
MAX_PARTS = 100
"""Rows that are stored for it each time, the largest counts first; the others wait for the end of
their minute."""
MAX_ANONYMOUS = 1000
"""Peers that are counted each by itself; all others together."""
MAX_ANONYMOUS_ROWS = 1000
"""Rows a minute for refused requests without credentials, each by itself."""
SEVERAL = "(several)"
OTHERS = Principal(kind=Kind.ANONYMOUS, id="peer:others")


@dataclass(slots=True)
class _Summary:
    until: float
    last: Ended
    tool: str | None
    times: int = 0

    def row(self) -> Record:
        """The row of what was counted since the last one."""
        last = self.last._replace(ids=None)  # they are of one call, not of all
        row = record_of(last)._replace(tool_name=self.tool, times=self.times)
        self.tool, self.times = None, 0
        return row


class Summaries:
    """Counts what gets no row of its own, by caller."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Summary] = {}
        self._next_parts = 0.0
        self._rows_until = 0.0
        self._rows = 0
        """Of callers without credentials, within their limits, in this minute."""

    def add_anonymous(self, ended: Ended) -> bool:
        """Count a stranger's request; True if it is to be stored as it is."""
        now = time.time()
        if now >= self._rows_until:
            self._rows_until, self._rows = now + WINDOW, 0
        self._rows += 1
        if self._rows <= MAX_ANONYMOUS_ROWS:
            return True
        return self.add(ended._replace(principal=OTHERS))

    def add(self, ended: Ended) -> bool:
        """Count a call; True for the first of a minute, which is to be stored as it is."""
        key = (ended.principal.audit_fields, ended.allowed, ended.error_type)
        full = len(self._open) >= MAX_ANONYMOUS and ended.principal.kind is Kind.ANONYMOUS
        if full and key not in self._open:
            key = (OTHERS.audit_fields, ended.allowed, ended.error_type)
            ended = ended._replace(principal=OTHERS)
        summary = self._open.get(key)
        if summary is None:
            now = time.time()
            if not self._open:
                self._next_parts = now + PART_SECONDS
            self._open[key] = _Summary(now + WINDOW, ended, ended.tool)
            return True
        summary.times += 1
        summary.last = ended
        summary.tool = ended.tool if summary.tool in (None, ended.tool) else SEVERAL
        return False

    def due(self, *, all_of_them: bool = False) -> list[Record]:
        """The rows of the minutes that are over, and now and then of those that are not."""
        now = time.time()
        over = [key for key, one in self._open.items() if all_of_them or one.until <= now]
        ended = [self._open.pop(key) for key in over]
        if self._open and now >= self._next_parts:
            self._next_parts = now + PART_SECONDS
            ended += heapq.nlargest(MAX_PARTS, self._open.values(), key=lambda one: one.times)
        return [one.row() for one in ended if one.times]
