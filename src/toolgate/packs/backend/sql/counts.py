"""Numbers of documents that are kept by following the change log.

A change commits with its write, whoever writes. So what is stored here, and the changes after the
place up to which they were counted, make the numbers of this moment; a write costs nothing more.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
import orjson
from sqlalchemy import Connection, delete, func, insert, select, text, update

from toolgate.db.changes import DOCUMENTS
from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.tables import changes
from toolgate.gate.changes import Position, changes_after
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.sql.count_buckets import add_to_buckets, numbers_after
from toolgate.packs.backend.sql.count_documents import count_documents
from toolgate.packs.backend.sql.count_tables import count_state, counts
from toolgate.packs.backend.stats.counting import Counted, Numbers, count_changes, totals
from toolgate.throttled_log import ThrottledLog

PAGE = 500
FOLLOW_SECONDS = 5.0
LOCK = 0x7001_6A93
"""Of those who store what they counted anew, one at a time."""
SNAPSHOT = {
    "sqlite": ["BEGIN"],
    "postgresql": [
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL statement_timeout = 0",
    ],
}
"""How a look at one moment begins."""
POSTGRES_POSITION = text("SELECT CAST(pg_current_snapshot() AS text)")

logger = logging.getLogger(__name__)


class Stored(NamedTuple):
    """What was counted, and up to where."""

    epoch: int
    position: Position
    counts: Counter[Counted]


class SqlCounters:
    """Counts in the gate's database."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._log = ThrottledLog(logger, level=logging.ERROR)

    async def now(self) -> Mapping[Counted, int]:
        """The numbers at this moment."""
        second = int(self._clock())
        stored = await self._database.read(lambda connection: _stored(connection, second))
        if stored is None:
            return await self.recount(keep=False)
        newer = await self._newer(stored.position)
        result = stored.counts
        result.update(totals(newer, second))  # numbers are added, those below zero too
        return result

    async def _newer(self, position: Position) -> Numbers:
        """What changed after a place.

        A short page is the last one of a look, which may have begun before; the second is of now.
        """
        numbers: Numbers = Numbers()
        short = 0
        while short < 2:
            rows, position = await changes_after(self._database, position, PAGE)
            count_changes(numbers, _ours(rows))
            short += len(rows) < PAGE
        return numbers

    async def recount(self, *, keep: bool) -> Mapping[Counted, int]:
        """Count every document of one moment."""
        position, numbers = await self._database.read(_counted)
        if keep:
            await self._database.write(lambda connection: _replace(connection, position, numbers))
        return totals(numbers, int(self._clock()))

    async def follow(self) -> None:
        """Count what is new, again and again, until cancelled."""
        while True:
            await anyio.sleep(FOLLOW_SECONDS)
            try:
                await self.catch_up()
                self._log.end("numbers are kept up to date again")
            except Exception as problem:
                if not is_outage(problem):
                    self._log.record("numbers could not be kept up to date", exc_info=problem)

    async def catch_up(self) -> None:
        """Count all that is new, and store the numbers."""
        while await self._step():
            pass

    async def _step(self) -> bool:
        """Store what the next page of changes makes of the numbers; whether there may be more."""
        state = await self._database.read(_state, quick=True)
        if state is None:
            await self.recount(keep=True)
            return False
        epoch, position = state
        rows, after = await changes_after(self._database, position, PAGE)
        if not rows:
            return False
        numbers: Numbers = Numbers()
        count_changes(numbers, _ours(rows))

        def store(connection: Connection) -> bool:
            # Another server may have been quicker: then it has counted the same changes.
            if not _advance(connection, epoch, after):
                return False
            add_to_buckets(connection, numbers)
            return True

        return await self._database.write(store) or len(rows) == PAGE


def _ours(rows: Sequence[Any]) -> list[Any]:
    return [one for one in rows if one.store == DOCUMENTS and one.namespace == BACKEND.name]


def _state(connection: Connection) -> tuple[int, Position] | None:
    row = connection.execute(select(count_state)).first()
    return None if row is None else (row.epoch, Position(row.seq, row.since, row.until))


def _stored(connection: Connection, second: int) -> Stored | None:
    """What is stored, of one step: another server may take the next one meanwhile."""
    while True:
        before = _state(connection)
        rows: Sequence[Any] = connection.execute(numbers_after(second)).all()
        if before == _state(connection):
            break
    if before is None:
        return None
    found = {Counted(*orjson.loads(one[0])): int(one[1]) for one in rows}
    return Stored(*before, Counter(found))


def _counted(connection: Connection) -> tuple[Position, Numbers]:
    """Every document of one moment, and the place of that moment in the change log."""
    for statement in SNAPSHOT[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    try:
        numbers: Numbers = Numbers()
        if connection.dialect.name == "sqlite":
            position = Position(connection.scalar(select(func.max(changes.c.seq))) or 0)
        else:
            seen = str(connection.scalar(POSTGRES_POSITION))
            position = Position(since=seen, until=seen)
        count_documents(connection, numbers)
        return position, numbers
    finally:
        # Not by SQLAlchemy: it did not begin it.
        driver: Any = connection.connection.dbapi_connection
        if not connection.invalidated:
            driver.execute("ROLLBACK")


def _advance(connection: Connection, epoch: int, position: Position) -> bool:
    step = update(count_state).where(count_state.c.epoch == epoch)
    step = step.values(epoch=epoch + 1, **position._asdict())
    return connection.execute(step).rowcount == 1


def _replace(connection: Connection, position: Position, numbers: Numbers) -> None:
    """Go on from numbers that were counted anew."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    epoch = connection.scalar(select(func.max(count_state.c.epoch))) or 0
    connection.execute(delete(count_state))
    connection.execute(delete(counts))
    connection.execute(insert(count_state), [{"id": 1, "epoch": epoch + 1, **position._asdict()}])
    add_to_buckets(connection, numbers)
