"""Writes of the embedded database that wait are stored together, in one commit.

SQLite has one writer at a time, and most of what a small write takes is its commit. So what comes
while one commit is under way is stored by the next: each write in a savepoint of its own, so one
that fails undoes only itself, and each is answered only after the commit that holds it.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolgate.db.outages import Outage, is_rejected_by_server
from toolgate.db.threads import GRACE_SECONDS, Job, Threads, ThreadsClosed, current_job, has_ended

MAX_TOGETHER = 100
Work = Callable[[Connection], object]
W = TypeVar("W")


class WaitingWrite(Generic[W]):
    """What one transaction stores, and how far it has come."""

    def __init__(self, what: W) -> None:
        self.what = what
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.claimed = False
        """Whether a thread has begun with it: from then on it may be stored."""
        self.stored = False
        self.rejected = False
        """Whether it is known that nothing is stored."""
        self.weight = 0
        """About how many bytes it has, where that counts."""
        self._withdrawn = False
        self._lock = threading.Lock()

    def claim(self) -> bool:
        """Begin with it; False where nobody waits for it any more."""
        with self._lock:
            self.claimed = not self._withdrawn
            return self.claimed

    def withdraw(self) -> bool:
        """Nobody waits for it any more; False where it has begun."""
        with self._lock:
            self._withdrawn = not self.claimed
            return self._withdrawn

    def fail(self, error: BaseException, *, rejected: bool) -> None:
        """It ended with an error."""
        self.error, self.rejected = error, rejected

    def tell(self) -> None:
        """Let who waits for it know, on the event loop."""
        if self.done.done():
            return
        if self.error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self.error)
            self.done.exception()  # whoever waited may have gone


class NotShared(Exception):
    """A write turns out to take so long that others should not wait for it in one commit."""


class GroupUndone(Exception):
    """The database has undone every write of a group, as it does when the disk is full."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


Waiting = WaitingWrite[Sequence[Work]]


class GroupedWrites:
    """Takes writes in the order in which they come."""

    def __init__(
        self, engine: Engine, threads: Threads, turns: anyio.Semaphore, outage: Outage
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._turns = turns
        self._outage = outage
        self._waiting: list[Waiting] = []
        self._group: list[Waiting] = []
        self._job: Job | None = None
        """The thread's, while it works on the group."""
        self._drain: asyncio.Task[None] | None = None

    async def store(self, write: Waiting) -> None:
        """Return once it is stored; raise what it raised, or what the commit did."""
        self._waiting.append(write)
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._store_all())
        try:
            await asyncio.shield(write.done)
        except asyncio.CancelledError:
            if write.withdraw():
                self._stop_if_nobody_waits()
            else:
                with anyio.CancelScope(shield=True):
                    await has_ended(write.done, GRACE_SECONDS)
            raise

    def close(self) -> None:
        """Nothing that waits is stored any more."""
        for one in self._waiting:
            one.fail(ThreadsClosed("The database is closed."), rejected=True)
            one.tell()
        self._waiting.clear()

    async def _store_all(self) -> None:
        while self._waiting:
            async with self._turns:
                self._group = self._waiting[:MAX_TOGETHER]
                del self._waiting[: len(self._group)]
                await self._store_group()

    async def _store_group(self) -> None:
        group = self._group
        try:
            with self._outage.watch():
                await self._threads.finish(self._store, group)
        except GroupUndone as undone:
            for one in group:
                one.fail(undone.reason, rejected=True)
        except BaseException as error:
            for one in group:
                if one.error is None and not one.stored:
                    one.fail(error, rejected=not one.claimed)
            if not isinstance(error, Exception):
                raise
        finally:
            for one in group:
                one.tell()

    def _store(self, group: Sequence[Waiting]) -> None:
        self._job = current_job()
        connection = self._engine.connect()
        try:
            connection.begin()
            storing = [one for one in group if one.claim() and _run(connection, one)]
            commit_group(connection, storing)
        finally:
            self._job = None
            with suppress(SQLAlchemyError):
                connection.close()

    def _stop_if_nobody_waits(self) -> None:
        job = self._job
        if job is not None and not any(one.claimed or not one.done.done() for one in self._group):
            job.stop()


def _run(connection: Connection, write: Waiting) -> bool:
    """Do what a write does, or nothing of it; False where it raises."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute("SAVEPOINT one_write")
    try:
        for work in write.what:
            work(connection)
    except Exception as error:
        if not driver.in_transaction:
            raise GroupUndone(error) from error
        driver.execute("ROLLBACK TO one_write")
        driver.execute("RELEASE one_write")
        write.fail(error, rejected=True)
        return False
    driver.execute("RELEASE one_write")
    return True


def commit_group(connection: Connection, writes: Sequence[Waiting]) -> None:
    """Commit what these writes did."""
    try:
        connection.commit()
    except DBAPIError as error:
        for one in writes:
            one.fail(error, rejected=is_rejected_by_server(error))
        raise
    for one in writes:
        one.stored = True
