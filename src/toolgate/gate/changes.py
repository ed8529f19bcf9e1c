"""The change log, as it is read: by followers in commit order, and by who deletes what is old."""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import anyio
from sqlalchemy import Connection, Row, delete, select, text

from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.tables import changes
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

CLEAN_SECONDS = 60.0
MAX_DELETED = 500
"""Rows in one transaction: other writes wait for it."""
Clock = Callable[[], datetime]
NOTHING_SEEN = "1:1:"
"""PostgreSQL's words for a snapshot that sees no transaction."""
SNAPSHOT = text("SELECT CAST(pg_current_snapshot() AS text)")
BETWEEN = text(
    "NOT pg_visible_in_snapshot(CAST(CAST(transaction_id AS text) AS xid8), "
    "CAST(:since AS pg_snapshot)) "
    "AND pg_visible_in_snapshot(CAST(CAST(transaction_id AS text) AS xid8), "
    "CAST(:until AS pg_snapshot))"
)


class Position(NamedTuple):
    """How far a follower has come; the beginning, unless said otherwise."""

    seq: int = 0
    """The last change that it was given."""
    since: str = NOTHING_SEEN
    """On PostgreSQL: it was given all that this snapshot sees,"""
    until: str = NOTHING_SEEN
    """and up to `seq`, what this one sees beside it."""


async def changes_after(
    database: Database, position: Position, limit: int
) -> tuple[Sequence[Row[*tuple[object, ...]]], Position]:
    """The next changes, as rows of the table, and the position after them.

    Each change that commits comes once, those of a record in the order of their commits; of what
    is rolled back, nothing. SQLite commits rows in the order of their numbers. PostgreSQL does not,
    and of two transactions the one that began first may write last. So a follower goes from one
    snapshot to the next, and is given what only the second one sees, by number: a row gets its
    number while its record is locked, and who sees a transaction sees those that it waited for.

    Numbers of transactions are those of one server: after a restore to another one, the log has to
    begin anew (`DELETE FROM changes`).
    """
    if database.dialect == "sqlite":
        rows = await database.read(lambda connection: _rows(connection, position, limit))
        return rows, position._replace(seq=rows[-1].seq) if rows else position
    return await database.read(lambda connection: _next(connection, position, limit))


def _next(
    connection: Connection, position: Position, limit: int
) -> tuple[Sequence[Row[*tuple[object, ...]]], Position]:
    rows = _rows(connection, position, limit)
    if not rows:  # nor can there be any more between these two
        position = Position(since=position.until, until=str(connection.scalar(SNAPSHOT)))
        rows = _rows(connection, position, limit)
    return rows, position._replace(seq=rows[-1].seq) if rows else position


def _rows(
    connection: Connection, position: Position, limit: int
) -> Sequence[Row[*tuple[object, ...]]]:
    found = select(changes).where(changes.c.seq > position.seq)
    if connection.dialect.name == "postgresql":
        if position.since == position.until:
            return []
        # What the index has to be asked for: a snapshot begins with the first transaction that was
        # running, and the first that had not begun.
        first, after = position.since.split(":")[0], position.until.split(":")[1]
        number = changes.c.transaction_id
        between = BETWEEN.bindparams(since=position.since, until=position.until)
        found = found.where(number >= int(first), number < int(after), between)
    return connection.execute(found.order_by(changes.c.seq).limit(limit)).all()


class Retention:
    """Deletes changes that are older than so many days."""

    def __init__(
        self, database: Database, days: int, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._age = timedelta(days=days)
        self._clock = clock
        self._log = ThrottledLog(logger, level=logging.ERROR)

    async def run(self) -> None:
        """Delete what is old, about every minute, until cancelled."""
        while True:
            await anyio.sleep(CLEAN_SECONDS)
            try:
                await self.delete_old()
                self._log.end("old changes are deleted again")
            except Exception as problem:
                if not is_outage(problem):
                    message = "old changes could not be deleted; trying again"
                    self._log.record(message, exc_info=problem)

    async def delete_old(self) -> int:
        """Delete what is old, a few rows at a time; return how many."""
        total = 0
        while deleted := await self._delete_some():
            total += deleted
        return total

    async def _delete_some(self) -> int:
        oldest = self._clock() - self._age
        before = oldest.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        first = select(changes.c.created_at).order_by(changes.c.seq).limit(1)
        async with self._database.time_limit(writes=True):
            found = await self._database.read(lambda connection: connection.scalar(first))
            if found is None or found >= before:
                return 0
            return await self._database.write(lambda connection: _delete(connection, before))


def _delete(connection: Connection, before: str) -> int:
    some = select(changes.c.seq, changes.c.created_at).order_by(changes.c.seq).limit(MAX_DELETED)
    first = some.subquery()
    old = select(first.c.seq).where(first.c.created_at < before)
    return connection.execute(delete(changes).where(changes.c.seq.in_(old))).rowcount
