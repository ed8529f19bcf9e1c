"""Does the runs that are due: those of this process and those that another one left behind.

One worker in each process looks about every second, or at once where a run is started here. Who
takes a run holds its lease, renews it while it works, and stores nothing any more once it is lost.
A process that dies leaves its runs to who comes after the end of their leases.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from toolgate.db.outages import is_outage
from toolgate.throttled_log import ThrottledLog
from toolgate.workflows.declarations import (
    RunStatus,
    stamp,
)
from toolgate.workflows.executor import Executor, WorkerOptions
from toolgate.workflows.leases import LeasedRun
from toolgate.workflows.runs import Runs
from toolgate.workflows.schedules import Schedules
from toolgate.workflows.statements import (
    AnyRow,
    delete_old_runs,
    next_due,
    renew_leases,
    take_run,
    update_leased,
)

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
STOP_SECONDS = 3.0
"""How long a run may take to reach a checkpoint when the server stops; then it is cut off."""
CUT_OFF_SECONDS = 2.0
CLEAN_EVERY = timedelta(hours=1)
FIRST_CLEANING = timedelta(minutes=1)
MAX_DELETED = 500
"""Rows in one transaction: other writes wait for it."""


class Worker:
    """Does runs in this process."""

    def __init__(self, runs: Runs, worlds: Mapping[str, Any], options: WorkerOptions) -> None:
        """`worlds`: the open ports of each pack."""
        self._runs = runs
        self._options = options
        self._executor = Executor(runs, worlds, options)
        self._database = runs.database
        self._schedules = Schedules(runs, worlds)
        self._open: tuple[str, ...] = ()
        """The workflows that may go on now."""
        self._next_due = next_due(())
        self._waiting: frozenset[str] = frozenset()
        """Why others wait, as it was logged."""
        self._held: dict[asyncio.Task[None], LeasedRun] = {}
        now = runs.clock()
        self._renew_at, self._clean_at = now, now + FIRST_CLEANING
        self._log = ThrottledLog(logger, level=logging.ERROR)

    async def run(self) -> None:
        """Look for work until cancelled."""
        while True:
            # While something is held, often enough to renew its lease well before it ends.
            renewal = self._options.lease.total_seconds() / 3
            await self._runs.wake.wait(min(POLL_SECONDS, renewal) if self._held else POLL_SECONDS)
            try:
                await self.look()
                self._log.end("background work goes on")
            except Exception as problem:
                if not is_outage(problem):  # of which the database tells
                    self._log.record("background work cannot be looked for", exc_info=problem)

    async def look(self) -> None:
        """Renew what is held, start what is scheduled, take what is due."""
        await self._renew()
        self._find_open()
        if not self._open:
            return
        async with self._database.time_limit(writes=True):
            await self._schedules.start_due()
        await self._take_due()
        if self._runs.clock() >= self._clean_at:
            await self.delete_old()

    def _find_open(self) -> None:
        """Look which workflows may go on; say once why others do not."""
        why = {name: self._runs.why_waiting(name) for name in self._runs.declared}
        names = tuple(name for name in why if why[name] is None)
        if names != self._open:
            self._open, self._next_due = names, next_due(names)
        waiting = frozenset(words for words in why.values() if words)
        for words in sorted(waiting - self._waiting):
            logger.warning("%s", words)
        self._waiting = waiting

    async def close(self) -> None:
        """Stop at checkpoints, soon, and leave what has not ended to others."""
        self._executor.stopping = True
        if self._held:
            await asyncio.wait([*self._held], timeout=STOP_SECONDS)
        for held in self._held.values():
            held.scope.cancel()
        if self._held:
            await asyncio.wait([*self._held], timeout=CUT_OFF_SECONDS)

    async def finished(self) -> None:
        """Return once nothing is under way here (in tests)."""
        while self._held:
            await asyncio.wait([*self._held])

    async def delete_old(self) -> int:
        """Delete runs that ended long ago, a few at a time; return how many."""
        now = self._runs.clock()
        before = stamp(now - self._options.keep)
        total, deleted = 0, MAX_DELETED
        while deleted == MAX_DELETED:
            async with self._database.time_limit(writes=True):
                deleted = await self._database.write(
                    lambda c: delete_old_runs(c, before=before, limit=MAX_DELETED)
                )
            total += deleted
        self._clean_at = now + CLEAN_EVERY
        return total

    async def _renew(self) -> None:
        """Prolong every lease, well before it ends; stop what is no more ours."""
        now = self._runs.clock()
        if not self._held or now < self._renew_at:
            return
        until = now + self._options.lease
        held = {one.lease: one for one in self._held.values()}
        try:
            async with self._database.time_limit(writes=True):
                kept = await self._database.write(
                    lambda c: renew_leases(c, [*held], until=stamp(until))
                )
        except Exception:
            for one in held.values():
                if now >= one.until:
                    _stop(one)
            raise
        self._renew_at = now + self._options.lease / 3
        for lease, one in held.items():
            if lease in kept:
                one.until = until
            elif one in self._held.values():  # else it has ended meanwhile
                _stop(one)

    async def _take_due(self) -> None:
        while len(self._held) < self._options.concurrency and not self._executor.stopping:
            due = await self._database.look_up(self._next_due, {})
            if due is None or due.due_at > stamp(self._runs.clock()):
                return
            if not await self._take_one():
                return

    async def _take_one(self) -> bool:
        lease = secrets.token_hex(16)
        async with self._database.time_limit(writes=True):
            row, until = await self._database.write(lambda c: self._take(c, lease))
        if row is not None:
            self._begin(row, lease, until)
        return row is not None

    def _take(self, connection: Connection, lease: str) -> tuple[AnyRow | None, datetime]:
        # The lease begins now, not when a connection was asked for: it might have ended by now.
        moment = self._runs.clock()
        now, until = stamp(moment), moment + self._options.lease
        row = take_run(connection, now=now, until=stamp(until), lease=lease, workflows=self._open)
        if row is not None and row.started_at is None:
            update_leased(connection, row.id, lease, {"started_at": now})
            self._options.note(connection, row.id, row.workflow, RunStatus.RUNNING, 0.0)
        return row, until

    def _begin(self, row: AnyRow, lease: str, until: datetime) -> None:
        held = LeasedRun(
            id=row.id,
            workflow=row.workflow,
            lease=lease,
            until=until,
            duration=self._options.lease,
            database=self._database,
            clock=self._runs.clock,
            stopping=lambda: self._executor.stopping or self._waits(row.workflow),
        )
        task = asyncio.create_task(self._executor.do(row, held))
        self._held[task] = held
        task.add_done_callback(self._end)

    def _waits(self, workflow: str) -> bool:
        return self._runs.why_waiting(workflow) is not None

    def _end(self, task: "asyncio.Task[None]") -> None:
        del self._held[task]
        self._runs.wake.set()  # there is room for another one
        if not task.cancelled() and (failed := task.exception()):
            logger.error("a run could not be ended", exc_info=failed)


def _stop(held: LeasedRun) -> None:
    held.lost = True
    held.scope.cancel()
