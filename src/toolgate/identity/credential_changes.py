"""Follows what happens to credentials, so that good ones may be remembered for more than a second.

Triggers note every key, grant, token and record of a user that is changed or deleted, by whomever,
in the transaction that does it (docs/decisions/0050). One statement, twice a second and beside the
calls, tells what is new. What was remembered is as good as the last look: where the table cannot be
read, or is not the one it was, nothing that was remembered is trusted any more.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from math import inf
from typing import Any

import anyio
from sqlalchemy import delete, func, select

from toolgate.db.credential_changes import EVERYTHING, LOOK, MAX_NAMES, NAMES, NUMBERS
from toolgate.db.engine import Database
from toolgate.db.outages import Outage
from toolgate.db.tables import credential_changes as table

logger = logging.getLogger(__name__)

SECONDS = 0.5
"""Between two looks: with the time that a look takes, less than a second."""
MAX_CHANGED = 10_000
"""Names that are kept as changed; beyond that, too, everything is forgotten."""
LOOKS_BETWEEN_DELETIONS = 1_200
"""About ten minutes."""


async def pause_between_looks() -> None:
    """Between two looks."""
    await anyio.sleep(SECONDS)


class CredentialChanges:
    """Knows what has changed up to a moment ago, as `KIND:ID`."""

    def __init__(
        self, database: Database, pause: Callable[[], Awaitable[None]] = pause_between_looks
    ) -> None:
        self._database = database
        self._pause = pause
        self._outage = Outage(logger, "Looking for credentials that changed")
        self.seen_at = -inf
        """Everything that was committed before this moment is known."""
        self.looks = 0
        """How many looks there were; what is read between two of them has the earlier number."""
        self._forgotten_at = 0
        """The look at which everything was forgotten."""
        self._changed: dict[str, int] = {}
        """What was found to be changed, and by which look."""
        self._origin: Any = None
        self._begins = self._deletes_before = 0

    def is_unchanged(self, names: Sequence[str], since: int) -> bool:
        """Whether what was read after that look is still so, as of `seen_at`."""
        if since < self._forgotten_at:
            return False
        found = self._changed
        return not found or all([found.get(name, 0) <= since for name in names])

    async def run(self) -> None:
        """Look until cancelled."""
        for number in count(1):
            await self.look()
            if number % LOOKS_BETWEEN_DELETIONS == 0:
                await self.delete_seen()
            await self._pause()

    async def look(self) -> None:
        """Take what is new; forget everything where that cannot be told."""
        began = time.monotonic()
        try:
            row = await self._database.look_up(LOOK[self._database.dialect], {})
            is_new = row.newest is not None and row.newest >= self._begins
            names = await self._names() if is_new else []
        except Exception as problem:
            self._outage.note_failure(problem)
            self._forget()
            self.seen_at = -inf
            return
        self._outage.note_success()
        self.looks += 1
        if self._is_unknown(row, names):
            self._forget()
        self._changed.update(dict.fromkeys(names, self.looks))
        self._origin, self._begins = row.origin, row.begins
        self.seen_at = began

    def _is_unknown(self, row: Any, names: Sequence[str]) -> bool:
        """Whether something may have changed of which there is no row to be seen."""
        other = row.origin != self._origin or row.begins < self._begins
        deleted = row.oldest is not None and row.oldest > self._begins
        many = len(names) > MAX_NAMES or len(names) + len(self._changed) > MAX_CHANGED
        return other or deleted or many or EVERYTHING in names

    async def _names(self) -> list[str]:
        asked, values = NAMES[self._database.dialect], {"begins": self._begins}
        async with self._database.time_limit():
            return await self._database.read(
                lambda connection: list(connection.scalars(asked, values))
            )

    def _forget(self) -> None:
        self.looks += 1
        self._forgotten_at = self.looks
        self._changed.clear()

    async def delete_seen(self) -> None:
        """Delete what every look has long seen; the newest of it stays, to tell what is gone."""
        number = NUMBERS[self._database.dialect]
        newest = select(func.max(number)).where(number < self._deletes_before).scalar_subquery()
        try:
            async with self._database.time_limit(writes=True):
                await self._database.write(
                    lambda c: c.execute(delete(table).where(number < newest))
                )
        except Exception as problem:
            logger.debug("seen changes of credentials could not be deleted", exc_info=problem)
        self._deletes_before = self._begins
