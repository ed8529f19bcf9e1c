"""A write's transaction: opened at the first statement, committed once, with its audit row."""

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum, auto
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import anyio
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolgate.db.changes import Change, store_changes
from toolgate.db.connections import interrupt_of
from toolgate.db.grouped_writes import GroupedWrites, NotShared, WaitingWrite, Work
from toolgate.db.held_records import WrittenRecord
from toolgate.db.outages import Outage, is_rejected_by_server
from toolgate.db.row_writes import Rows, RowWrite
from toolgate.db.threads import Interrupt, JobStopped, Threads, current_job

T = TypeVar("T")


class DeferredWork(NamedTuple):
    """What a transaction does at its end."""

    run: Work
    rows: Rows | None = None
    """The same, where it is only about rows: they may be stored without a transaction's steps."""
    alone: bool = False
    """Whether it takes so long that others should not wait for it in one commit."""


class RowStore(Protocol):
    """Stores what writes do to rows."""

    def writing(self, rows: Sequence[RowWrite]) -> AbstractContextManager[WrittenRecord]:
        """The record that a write is about, until it is stored, whichever way."""
        ...

    async def store(self, write: WaitingWrite[Sequence[RowWrite]]) -> bool:
        """Return once it is stored, or False where it has to be stored the usual way."""
        ...


class TransactionState(Enum):
    """What became of a transaction."""

    OPEN = auto()
    COMMITTING = auto()
    """Asked for and not confirmed: if it stays so, nobody here knows whether it is stored."""
    COMMITTED = auto()
    ENDED = auto()
    """It stored nothing, and will not."""


class Transaction:
    """One unit of work on the gate's database.

    Lazy, so that a write which asks the outside world first holds no lock meanwhile.
    Leaving the block commits; an exception, or `abandon()`, rolls back.
    Waits for its turn as a task: if waiting writers took the threads, the one whose turn it is
    would find none to go on.
    """

    def __init__(
        self,
        engine: Engine,
        threads: Threads,
        turns: anyio.Semaphore,
        outage: Outage,
        *,
        grouped: GroupedWrites | None = None,
        row_store: RowStore | None = None,
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._turns = turns
        self._outage = outage
        self._grouped = grouped
        self._row_store = row_store
        self._deferred: list[DeferredWork] = []
        self._after_commit: list[Callable[[], object]] = []
        self._its_turn = False
        self._connection: Connection | None = None
        self._interrupt: Interrupt | None = None
        self._abandoned = False
        self._failure: BaseException | None = None
        """Why a part could not be stored: then nothing is, even if somebody caught this."""
        self.call: str | None = None
        """The id of the audit row that its changes belong to."""
        self.in_group = False
        """Whether others wait for the same commit."""
        self.diff: list[Change] | None = None
        """In a dry run, what would change."""
        self._lock = threading.Lock()
        """Held for a look at what follows, which the event loop and a thread change."""
        self._busy = False
        """A thread uses the connection."""
        self._left = False
        """Nobody waits for that thread any more, so it closes the connection itself."""
        self.fate = TransactionState.OPEN

    @property
    def committed(self) -> bool:
        """Whether it is stored."""
        return self.fate is TransactionState.COMMITTED

    @property
    def in_doubt(self) -> bool:
        """Whether it may be stored, without anybody here having been told."""
        return self.fate is TransactionState.COMMITTING

    def confirm(self) -> None:
        """It is stored after all, as was found out elsewhere."""
        self.fate = TransactionState.COMMITTED

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run a function on this transaction's connection, in a thread."""
        if not self._its_turn:
            await self._turns.acquire()
            self._its_turn = True
        with self._outage.watch():
            return await self._threads.run(self._run, work)

    def defer(self, work: Work, rows: Rows | None = None, *, alone: bool = False) -> None:
        """Run a function on this transaction's connection before it commits, or anything else runs.

        What it raises, the end of the block raises. A transaction of deferred work alone takes one
        way to the database; in an embedded one it shares the commit of those that come with it. In
        PostgreSQL it does where all of it is told as `rows`, too. Work that takes long, which is
        stored `alone`, shares nothing; within a group (`in_group`) it may raise `NotShared`.
        """
        self._deferred.append(DeferredWork(work, rows, alone))

    def after_commit(self, told: Callable[[], object]) -> None:
        """Call a function once it is stored, on the event loop; what it raises, the block raises.

        Where nobody knows whether it is stored, it is not called.
        """
        self._after_commit.append(told)

    def changed(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Log what a store has just changed on this connection, in the same work.

        A store that takes changes back itself (a savepoint) reports those that are left.
        """
        if self.diff is not None:
            self.diff += changes
        elif changes:
            try:
                store_changes(connection, self.call, changes)
            except BaseException as error:
                self._failure = error
                raise

    def _run(self, work: Callable[[Connection], T]) -> T:
        with self._in_use():
            if self._connection is None:
                self._connection = self._connect()
            self._run_deferred(self._connection)
            return work(self._connection)

    def _run_deferred(self, connection: Connection) -> None:
        deferred, self._deferred = self._deferred, []
        try:
            for work in deferred:
                work.run(connection)
        except BaseException as error:
            self._failure = error
            raise

    def _connect(self) -> Connection:
        connection = self._engine.connect()
        try:
            connection.begin()
            self._interrupt = interrupt_of(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _in_use(self) -> Generator[None, None, None]:
        """Use the connection in this thread; close it afterwards if nobody else will."""
        with self._lock:
            if self._left:
                raise JobStopped
            self._busy = True
        try:
            if not self._interruptible():
                raise JobStopped
            yield
        finally:
            with self._lock:
                self._busy = False
                left = self._left
            if left and self._connection is not None:
                _roll_back(self._connection)

    def abandon(self) -> None:
        """Let the end of the block roll back (a dry run)."""
        self._abandoned = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave(kind)
        if self.committed:
            for told in self._after_commit:
                told()

    async def _leave(self, kind: type[BaseException] | None) -> None:
        with self._lock:
            self._left = self._busy
        commit = kind is None and not self._abandoned and self._failure is None
        if kind is not None or self._failure is not None:
            self._deferred.clear()
        try:
            if self._left:
                return
            if self._connection is not None:
                await self._finish(commit=commit)
            elif kind is None and self._deferred:
                await self._store_deferred(commit=commit)
        finally:
            with self._lock:
                if self.fate is TransactionState.OPEN:
                    self.fate = TransactionState.ENDED
            if self._its_turn:
                self._turns.release()
        if kind is None and self._failure is not None:
            raise self._failure

    async def _store_deferred(self, *, commit: bool) -> None:
        shares = commit and not any(one.alone for one in self._deferred)
        if shares and self._grouped is not None and await self._join_group(self._grouped):
            return None
        rows = self._rows() if shares and self._row_store is not None else None
        if rows is None or self._row_store is None:
            return await self._store_the_usual_way(commit=commit)
        with self._row_store.writing(rows) as record:
            if not record.held and await self._store_rows(self._row_store, rows):
                return None
            if record.held:
                self._deferred.insert(0, DeferredWork(record.bound_wait))
            async with record.in_turn():
                return await self._store_the_usual_way(commit=commit)

    async def _store_the_usual_way(self, *, commit: bool) -> None:
        await self._turns.acquire()
        self._its_turn = True
        with self._outage.watch():
            await self._threads.run(self._run_and_end, commit)

    def _run_and_end(self, commit: bool) -> None:
        with self._in_use():
            self._connection = self._connect()
            try:
                self._run_deferred(self._connection)
            except BaseException:
                _roll_back(self._connection)
                raise
            self._end(commit)

    async def _join_group(self, grouped: GroupedWrites) -> bool:
        """Store it together with others; False, and nothing is stored, where it takes too long."""
        write: WaitingWrite[Sequence[Work]] = WaitingWrite([one.run for one in self._deferred])
        self.in_group = True
        try:
            await grouped.store(write)
        except NotShared:
            return False
        finally:
            self.in_group = False
            self._note_fate(write)
        return True

    def _rows(self) -> Sequence[RowWrite] | None:
        """What is deferred as rows; None where it cannot be told or stored so."""
        rows: list[RowWrite] = []
        for one in self._deferred:
            if one.rows is None:
                return None
            try:
                rows += one.rows()
            except Exception:
                return None  # the usual way sees what was deferred before, and tells what is wrong
        if sum(part.guard is not None for part, _ in rows) > 1:
            return None  # one of them may find its record, and another not
        return rows

    async def _store_rows(self, row_store: RowStore, rows: Sequence[RowWrite]) -> bool:
        """Store rows; False, and nothing is stored, where that cannot be."""
        write: WaitingWrite[Sequence[RowWrite]] = WaitingWrite(rows)
        try:
            with self._outage.watch():
                return await row_store.store(write)
        finally:
            self._note_fate(write)

    def _note_fate(self, write: WaitingWrite[Any]) -> None:
        if write.stored:
            self.fate = TransactionState.COMMITTED
        elif write.claimed and not write.rejected:
            self.fate = TransactionState.COMMITTING

    async def _finish(self, *, commit: bool) -> None:
        with self._outage.watch():
            await self._threads.finish(self._end, commit)

    def _end(self, commit: bool) -> None:
        assert self._connection is not None
        if not self._interruptible():
            return _roll_back(self._connection)
        try:
            self._run_deferred(self._connection)
        except BaseException:
            _roll_back(self._connection)
            raise
        if not commit or not self._may_commit():
            return _roll_back(self._connection)
        try:
            self._connection.commit()
            self.fate = TransactionState.COMMITTED
        except DBAPIError as problem:
            if is_rejected_by_server(problem):
                self.fate = TransactionState.ENDED
            raise
        finally:
            _close(self._connection)

    def _interruptible(self) -> bool:
        """Let this thread be interrupted; False, and done, where that was asked for already."""
        job = current_job()
        if job is None or self._interrupt is None:
            return True
        try:
            job.set_interrupt(self._interrupt)
        except JobStopped:
            self._interrupt()
            return False
        return True

    def _may_commit(self) -> bool:
        """Say that the commit is asked for, unless nobody waits for it any more."""
        with self._lock:
            if self.fate is not TransactionState.OPEN:
                return False
            self.fate = TransactionState.COMMITTING
            return True


def _roll_back(connection: Connection) -> None:
    # One that cannot be rolled back is lost, and rolled back by the database.
    with contextlib.suppress(SQLAlchemyError):
        connection.rollback()
    _close(connection)


def _close(connection: Connection) -> None:
    with contextlib.suppress(SQLAlchemyError):
        connection.close()
