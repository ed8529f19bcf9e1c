"""One attempt of a run: its function is called, and what becomes of it is stored."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
from sqlalchemy import Connection

from toolgate.db.outages import is_outage
from toolgate.workflows.declarations import (
    Run,
    RunCancelled,
    RunFailed,
    RunLost,
    RunReleased,
    RunStatus,
    stamp,
)
from toolgate.workflows.endings import Ending, ended, released, tried_again
from toolgate.workflows.leases import LeasedRun
from toolgate.workflows.runs import Runs
from toolgate.workflows.statements import AnyRow, cancel_run, update_leased

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
AFTER_OUTAGE = timedelta(seconds=5)
Note = Callable[[Connection, str, str, RunStatus, float], None]
"""Stores the audit row of a run that begins or has ended, in the same commit: its id, its workflow,
its status, and how many seconds the last attempt took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What a worker is told."""

    concurrency: int
    lease: timedelta
    keep: timedelta
    """How long runs are kept after their end."""
    note: Note
    describe: Callable[[Exception], str | None]
    """An error in words that may be told; None where there are none."""


class Executor:
    """Calls the functions of workflows."""

    def __init__(self, runs: Runs, worlds: Mapping[str, Any], options: WorkerOptions) -> None:
        """`worlds`: the open ports of each pack."""
        self._runs = runs
        self._worlds = worlds
        self._options = options
        self._database = runs.database
        self.stopping = False
        """Whether runs end at their next checkpoint."""

    async def do(self, row: AnyRow, held: LeasedRun) -> None:
        """One attempt, and what becomes of it."""
        began = asyncio.get_running_loop().time()
        ending = await self._attempt(row, held)
        if ending is None:
            logger.warning("run %s of %s goes on elsewhere", held.id, held.workflow)
            return
        seconds = asyncio.get_running_loop().time() - began
        try:
            await self._store(held, ending, seconds)
        except Exception as problem:
            # Such as a result that is no JSON. The next attempt would end in the same way.
            message = _unworded(problem)
            logger.exception("the end of run %s of %s cannot be stored", held.id, held.workflow)
            failed = ended(self._runs.clock(), RunStatus.FAILED, error=message)
            await self._store(held, failed, seconds)

    async def _attempt(self, row: AnyRow, held: LeasedRun) -> Ending | None:
        """Do it; None where the lease is lost."""
        workflow = self._runs.declared[row.workflow]
        if row.cancelling:
            return ended(self._runs.clock(), RunStatus.CANCELLED)
        if row.attempts > workflow.attempts:
            error = f"The last of {workflow.attempts} attempts never ended: its server stopped."
            if row.error:
                error = f"{error} An attempt before had failed: {row.error}"
            return ended(self._runs.clock(), RunStatus.FAILED, error=error)
        run = Run[Any](
            id=row.id,
            arguments=row.arguments,
            world=self._worlds.get(row.workflow.partition("/")[0]),
            attempt=row.attempts,
            state=row.state,
            leased=held,
        )
        result: dict[str, Any] = {}
        try:
            with held.scope:
                result = await workflow.run(run)
        except Exception as error:
            return self._ending_of(error, row, workflow.attempts)
        now = self._runs.clock()
        if held.lost:
            return None
        if held.scope.cancelled_caught:
            return released(now, now)
        return ended(now, RunStatus.SUCCEEDED, result=result, error=None)

    def _ending_of(self, error: Exception, row: AnyRow, attempts: int) -> Ending | None:
        now = self._runs.clock()
        match error:
            case RunLost():
                return None
            case RunCancelled():
                return ended(now, RunStatus.CANCELLED)
            case RunFailed():
                return ended(now, RunStatus.FAILED, error=str(error))
            case _ if is_outage(error) or isinstance(error, RunReleased):
                pause = AFTER_OUTAGE if is_outage(error) else timedelta()
                return released(now, now + pause)
            case _:
                return self._failed_attempt(error, row, attempts)

    def _failed_attempt(self, error: Exception, row: AnyRow, attempts: int) -> Ending:
        words = self._options.describe(error)
        if words is None:
            logger.error("run %s of %s failed", row.id, row.workflow, exc_info=error)
            words = _unworded(error)
        if row.attempts < attempts:
            return tried_again(self._runs.clock(), row.attempts, words)
        return ended(self._runs.clock(), RunStatus.FAILED, error=words)

    async def _store(self, held: LeasedRun, ending: Ending, seconds: float) -> None:
        """Store the end of an attempt; while the database does not answer, again and again."""
        while True:
            try:
                with anyio.CancelScope(shield=True):
                    async with self._database.time_limit(writes=True):
                        return await self._database.write(
                            lambda connection: self._end(connection, held, ending, seconds)
                        )
            except Exception as problem:
                if not is_outage(problem):
                    raise
                if self.stopping or self._runs.clock() >= held.until:
                    return None  # who takes it next does it again from its last checkpoint
            await self._runs.pause(RETRY_SECONDS)

    def _end(self, connection: Connection, held: LeasedRun, ending: Ending, seconds: float) -> None:
        row = update_leased(connection, held.id, held.lease, ending.values)
        if row is None:
            return
        status = ending.status
        if not ending.final and row.cancelling:
            cancel_run(connection, held.id, now=stamp(self._runs.clock()))
            status = RunStatus.CANCELLED
        if status is not RunStatus.QUEUED:
            self._options.note(connection, held.id, held.workflow, status, seconds)


def _unworded(error: Exception) -> str:
    """What is told of an error whose own words may hold anything."""
    return f"It failed with {type(error).__name__}; the server's log has the details."
