"""A run in the hands of one worker: what it stores counts only while the lease is held."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import anyio
from sqlalchemy import Connection

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.workflows.declarations import Clock, RunCancelled, RunLost, RunReleased, stamp
from toolgate.workflows.statements import update_leased


@dataclass(slots=True, kw_only=True, eq=False)
class LeasedRun:
    """Stores checkpoints of a run that this process works on."""

    id: str
    workflow: str
    lease: str
    until: datetime
    """When the lease ends, unless it is renewed."""
    duration: timedelta
    """Of a lease."""
    database: Database
    clock: Clock
    stopping: Callable[[], bool]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """What the run is done in."""
    lost: bool = False
    """Whether it was stopped because the lease is no more ours."""

    def transaction(self) -> Transaction:
        """A transaction whose changes belong to the audit row that the run began with."""
        tx = self.database.transaction()
        tx.call = self.id
        return tx

    async def checkpoint(self, state: dict[str, Any], **progress: Any) -> None:
        """Store a checkpoint in a commit of its own."""
        async with self.transaction() as tx:
            await self.checkpoint_in(tx, state, **progress)

    async def checkpoint_in(
        self,
        tx: Transaction,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store a checkpoint with this transaction, which renews the lease as well.

        What was done before it is done, so nothing but a lost lease keeps it from being stored:
        whether the run is to stop is looked at afterwards.
        """
        now = self.clock()
        until = now + self.duration
        told = {"done": done, "total": total, "message": message}
        values: dict[str, Any] = {name: one for name, one in told.items() if one is not None}
        values |= {"state": state, "due_at": stamp(until), "updated_at": stamp(now)}
        cancelling = False

        def store(connection: Connection) -> None:
            nonlocal cancelling
            row = update_leased(connection, self.id, self.lease, values)
            if row is None:
                raise RunLost(f"Another worker has the run {self.id}.")
            cancelling = row.cancelling

        def stop_if_asked() -> None:
            self.until = until
            if cancelling:
                raise RunCancelled("The run was cancelled.")
            if self.stopping():
                raise RunReleased("The server stops, or the work is switched off.")

        tx.defer(store)
        tx.after_commit(stop_if_asked)
