"""Who called what, when, and how it was decided. Never arguments, never results.

A write's row commits with the write. Rows of reads and refusals are collected, stored in batches
and sealed with it: on a clean stop all of them, after a crash all but the last batch.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import anyio
from sqlalchemy import Connection, select, text, update

from toolgate.db.engine import Database
from toolgate.db.health import DatabaseHealth, DatabaseReplaced
from toolgate.db.outages import Outage, describe
from toolgate.db.tables import audit
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import Ended, Record, in_batches, record_of, rows_of, store
from toolgate.gate.errors import Unavailable
from toolgate.gate.seals import store_sealed
from toolgate.gate.summaries import Summaries

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.25
LATE_SECONDS = 0.25
"""So long a batch may take to be stored; then calls wait until it is."""
BATCH_ROWS = 250
MAX_TOGETHER = 500
"""Rows in one transaction: of a long backlog, each that ends in time is progress."""
MAX_WAITING = 20_000


class AuditUnavailable(Exception):
    """Audit rows cannot be stored; no further call is answered until they can."""


class AuditLog:
    """Stores records: with a write, or soon."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._health = DatabaseHealth(database)
        self._waiting: list[Ended] = []
        self._unstored: list[Record] = []
        """Rows that could not be stored, or of which that is not known."""
        self._summaries = Summaries()
        self._in_doubt: list[Record] = []
        """Rows of writes that may be stored together with their rows."""
        self._outage = Outage(logger, "Storing audit rows, without which no call is answered,")
        self._unsettled = Outage(logger, "Storing audit rows of writes that were not confirmed")
        self._wake = anyio.Event()
        self._failing = False
        self.blocked = False
        """Whether a call has to wait for `make_room`, because rows cannot be kept as they come."""
        self._flushing = anyio.Lock()
        self._storing: asyncio.Task[int] | None = None
        self.dropped = 0

    async def make_room(self) -> None:
        """Where `blocked`: store what waits; raise `AuditUnavailable` when that is not possible."""
        if self._failing:
            raise AuditUnavailable
        try:
            async with asyncio.timeout(self._database.patience):
                await self._store_some()
        except Exception as problem:
            raise AuditUnavailable from problem

    async def check(self) -> None:
        """Raise `AuditUnavailable` while rows cannot be stored."""
        if self._failing:
            raise AuditUnavailable("rows cannot be stored")
        if self.blocked:
            await self.make_room()

    def queue(self, ended: Ended) -> None:
        """Keep a call for the next batch; past a bound, where calls are refused, only count."""
        if (
            self._failing
            and ended.error_type == Unavailable.kind
            and not self._summaries.add(ended)
        ):
            return  # who tries again and again during an outage has one row a minute
        self._waiting.append(ended)
        waiting = len(self._waiting)
        if waiting == BATCH_ROWS:
            self._wake.set()
        elif waiting + len(self._unstored) >= MAX_WAITING:
            self._block()

    def queue_limited(self, ended: Ended) -> bool:
        """The same for a call past a limit: the first has a row, many others one together.

        Whether it has a row of its own.
        """
        if own := self._summaries.add(ended):
            self.queue(ended)
        return own

    def queue_anonymous(self, ended: Ended) -> bool:
        """The same for a request of a stranger: so many a minute have a row, the others one."""
        if own := self._summaries.add_anonymous(ended):
            self.queue(ended)
        return own

    def _block(self) -> None:
        if self.blocked:
            self._waiting.pop()
            self.dropped += 1
        self.blocked = True

    def store_with_write(self, tx: Transaction, record: Record) -> None:
        """Store a record in a write's own transaction, right before it commits."""
        tx.defer(lambda connection: store(connection, [record]), lambda: [rows_of([record])])

    def store_on(self, connection: Connection, record: Record) -> None:
        """Store a record in the transaction of this connection."""
        store(connection, [record])

    async def store_now(self, record: Record) -> None:
        """Store a record at once, in a transaction of its own."""
        await self._database.write(lambda connection: store(connection, [record]))

    async def complete(self, begun: Record, record: Record) -> None:
        """Give a row that was stored before its write the end it came to.

        The write is done, whatever becomes of this: a row that cannot be completed stays started.
        """
        ended = (
            update(audit)
            .where(audit.c.id == begun.id)
            .values(
                decision=record.decision,
                rule=record.rule,
                status=record.status,
                error_type=record.error_type,
                duration_ms=record.duration_ms,
            )
        )
        try:
            with anyio.CancelScope(shield=True):
                async with self._database.time_limit(writes=True):
                    await self._database.write(lambda connection: connection.execute(ended))
        except Exception as problem:
            logger.error(  # noqa: TRY400 (the database tells of itself)
                "audit row %s could not be completed: %s", begun.id, describe(problem)
            )

    def store_unless_there(self, row: Record, error_type: str | None) -> None:
        """Store a write's row with this end, unless it turns out to be stored with the write."""
        if len(self._in_doubt) < MAX_WAITING:
            self._in_doubt.append(row._replace(status="error", error_type=error_type))
        else:
            self.dropped += 1

    def log_lost(self, problem: BaseException) -> None:
        """Log at the end which rows could not be stored, and why."""
        self._log_dropped()
        waiting = [record_of(one) for one in self._waiting]
        lost = [*waiting, *self._unstored, *self._in_doubt]
        if not lost:
            logger.error(
                "the last audit rows are stored, but not sealed yet: %s", describe(problem)
            )
            return
        times = [one.created_at for one in lost]
        logger.error(
            "the last %d audit rows (%d calls, from %s to %s) could not be stored: %s",
            len(lost),
            sum(one.times for one in lost),
            min(times),
            max(times),
            describe(problem),
        )

    async def contains(self, row: Record) -> bool:
        """Whether a row is stored."""
        same = select(audit.c.id).where(audit.c.id == row.id)
        async with self._database.time_limit():
            return await self._database.read(lambda c: c.execute(same).first()) is not None

    async def flush(self, *, last: bool = False) -> None:
        """Store everything that waits; with `last`, also counts of minutes that are not over."""
        if last or not self._failing:  # else they go on counting: rows would pile up
            self._unstored += self._summaries.due(all_of_them=last)
        self._check_file()
        async with self._flushing:  # what is being stored now does not wait any more
            left = len(self._unstored) + len(self._waiting)
        while left > 0 and (stored := await self._store_some()):
            left -= stored
        async with self._flushing:
            while self._in_doubt and await self._settle():
                pass
        self._log_dropped()
        if not self._waiting and not self._unstored:
            self._failing = self.blocked = False
            self._outage.note_success()

    def _check_file(self) -> None:
        """SQLite would go on writing to a file that was deleted, for nobody to find."""
        try:
            self._health.check_file()
        except DatabaseReplaced as problem:
            self._failing = self.blocked = True
            self._outage.note_failure(problem)
            raise

    async def _store_some(self) -> int:
        """Store the first of those that wait, in one transaction; how many they were.

        In a task of its own, which all who wait for room share: a caller that goes away, or waits
        no longer, stops nothing of what everybody needs.
        """
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_first())
            self._storing.add_done_callback(_take_note)
        return await asyncio.shield(self._storing)

    async def _store_first(self) -> int:
        async with self._flushing:
            if some := self._unstored[:MAX_TOGETHER]:
                await self._commit(lambda connection: _store_missing(connection, some))
                del self._unstored[: len(some)]
                return len(some)
            return await self._store_new()

    async def _store_new(self) -> int:
        batch, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
        if not batch:
            return 0
        records: list[Record] = []

        def keep(connection: Connection) -> None:
            records[:] = [record_of(one) for some in in_batches(batch) for one in some]
            store_sealed(connection, records)

        try:
            await self._commit(keep)
        except BaseException:
            # Rows are made once: by their ids they are known again.
            self._unstored += records
            self._waiting = self._waiting if records else batch + self._waiting
            raise
        return len(batch)

    async def _commit(self, work: Callable[[Connection], None]) -> None:
        """Store rows; calls are refused from a failure to the next success."""
        late = asyncio.get_running_loop().call_later(LATE_SECONDS, self._hold_calls)
        try:
            async with self._database.time_limit(writes=True):
                await self._database.write(work)
        except Exception as problem:
            self._failing = self.blocked = True
            self._outage.note_failure(problem)
            raise
        finally:
            late.cancel()
        self._failing = self.blocked = False
        self._outage.note_success()

    def _hold_calls(self) -> None:
        self.blocked = True

    async def _settle(self) -> bool:
        """Store some rows of writes whose commit was not confirmed, unless they are there."""
        rows, self._in_doubt = self._in_doubt[:MAX_TOGETHER], self._in_doubt[MAX_TOGETHER:]
        try:
            with anyio.CancelScope(shield=True):
                async with self._database.time_limit(writes=True):
                    await self._database.write(lambda c: _store_unless_committing(c, rows))
            self._unsettled.note_success()
        except BaseException as problem:
            self._in_doubt = rows + self._in_doubt
            self._unsettled.note_failure(problem)
            if not isinstance(problem, Exception):
                raise
            return False
        return True

    def _log_dropped(self) -> None:
        if self.dropped:
            logger.error("%d calls have no audit row: too many came at once", self.dropped)
            self.dropped = 0

    async def run(self) -> None:
        """Store batches until cancelled."""
        while True:
            with anyio.move_on_after(BATCH_SECONDS):
                await self._wake.wait()
            self._wake = anyio.Event()
            try:
                await self.flush()
            except Exception:
                logger.debug("audit rows could not be stored", exc_info=True)


def _take_note(storing: "asyncio.Task[int]") -> None:
    """Who waited for it may have gone, and with them who would be told its error."""
    if not storing.cancelled():
        storing.exception()


def _store_unless_committing(connection: Connection, records: Sequence[Record]) -> None:
    """The commit may still be on its way: then its row cannot be stored by us, and need not be."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
    _store_missing(connection, records)


def _store_missing(connection: Connection, records: Sequence[Record]) -> None:
    """A batch that failed may be there all the same, if only the answer to its commit was lost."""
    same = select(audit.c.id).where(audit.c.id.in_([one.id for one in records]))
    stored_ids = set(connection.scalars(same))
    if missing := [one for one in records if one.id not in stored_ids]:
        store_sealed(connection, missing)
