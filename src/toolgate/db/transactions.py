"""A write's transaction: opened at the first statement, committed once, with its audit row."""

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import anyio
from sqlalchemy import Connection, Engine

from toolgate.db.threads import Threads

T = TypeVar("T")


class Transaction:
    """One unit of work on the gate's database.

    Lazy, so that a write which asks the outside world first holds no lock meanwhile.
    Leaving the block commits; an exception, or `abandon()`, rolls back.
    Waits for its turn as a task: if waiting writers took the threads, the one whose turn it is
    would find none to go on.
    """

    def __init__(self, engine: Engine, threads: Threads, turns: anyio.Semaphore) -> None:
        self._engine = engine
        self._threads = threads
        self._turns = turns
        self._its_turn = False
        self._connection: Connection | None = None
        self._abandoned = False
        self.committed = False

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run a function on this transaction's connection, in a thread."""
        if not self._its_turn:
            await self._turns.acquire()
            self._its_turn = True
        return await self._threads.run(self._run, work)

    def _run(self, work: Callable[[Connection], T]) -> T:
        if self._connection is None:
            connection = self._engine.connect()
            try:
                connection.begin()
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return work(self._connection)

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
        try:
            if self._connection is not None:
                await self._threads.run(self._end, kind is None and not self._abandoned)
        finally:
            if self._its_turn:
                self._turns.release()

    def _end(self, kept: bool) -> None:
        assert self._connection is not None
        try:
            if kept:
                self._connection.commit()
                self.committed = True
            else:
                self._connection.rollback()
        finally:
            self._connection.close()
