"""Starting runs, waiting for them, and what operators do to them."""

import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.workflows.declarations import (
    Clock,
    RunRecord,
    RunStatus,
    Workflow,
    stamp,
    utc_now,
)
from toolgate.workflows.statements import (
    cancel_run,
    find_run,
    insert_run,
    list_runs,
    retry_run,
)

LOOK_SECONDS = 0.25
"""Between two looks at a run that somebody waits for."""
BESIDE_ANOTHER = (
    "Another run of this workflow is under way, beside which this one may not run. Wait until it "
    "has ended, or cancel it, and retry."
)
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Is told how far a run has come: done, of how much, in words."""
Pause = Callable[[float], Awaitable[None]]


class UnknownWorkflow(LookupError):
    """No enabled pack declares it."""


class RunNotFound(LookupError):
    """There is no run of this id, or it is no more kept."""


class RunConflict(Exception):
    """The run's status does not allow this; the message is for people."""


class Wake:
    """Wakes who looks for runs in this process; without anybody there, nothing."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """There is something to do."""
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Return when woken, or after so many seconds."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        self._event = anyio.Event()


@dataclass(slots=True)
class Runs:
    """All runs of the database, whichever pack they belong to."""

    database: Database
    declared: dict[str, Workflow[Any]] = field(default_factory=dict[str, Workflow[Any]])
    """By name, with the pack's."""
    clock: Clock = utc_now
    pause: Pause = anyio.sleep
    wake: Wake = field(default_factory=Wake)
    why_waiting: Callable[[str], str | None] = lambda _name: None
    """Why runs of a workflow wait, whatever is due; None where they go on."""

    def new_row(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        call: str | None = None,
    ) -> dict[str, Any]:
        """The row of a new run; raises `UnknownWorkflow`."""
        if name not in self.declared:
            raise UnknownWorkflow(f"No pack in use has a workflow {name}.")
        now = stamp(self.clock())
        arguments = arguments or {}
        return {
            "id": secrets.token_hex(16),
            "workflow": name,
            "arguments": arguments,
            "key": key,
            "alone": self.declared[name].alone_as(name, arguments),
            "status": RunStatus.QUEUED.value,
            "due_at": now,
            "attempts": 0,
            "cancelling": False,
            "state": {},
            "call": call,
            "created_at": now,
            "updated_at": now,
        }

    async def add(self, tx: Transaction, row: dict[str, Any]) -> str:
        """Store a new run in this transaction; its id, or that of the one it joins."""
        if row["key"] is None and row["alone"] is None:
            tx.defer(lambda connection: insert_run(connection, row))
            id: str = row["id"]
        else:
            id = await tx.run(lambda connection: insert_or_join(connection, row))
        tx.after_commit(self.wake.set)
        return id

    async def find(self, id: str) -> RunRecord:
        """The run of this id; raises `RunNotFound`."""
        found = await self.database.read(lambda c: find_run(c, id), quick=True)
        if found is None:
            raise RunNotFound(f"There is no run {id}.")
        return found

    async def list(
        self,
        *,
        pack: str | None = None,
        workflow: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
    ) -> list[RunRecord]:
        """The newest runs, newest first."""
        return await self.database.read(
            lambda c: list_runs(c, pack=pack, workflow=workflow, status=status, limit=limit)
        )

    async def wait(
        self,
        id: str,
        report: Report | None = None,
        *,
        seconds: float | None = None,
        attempts: int | None = None,
    ) -> RunRecord:
        """Wait until a run ends, wherever it runs, and tell its progress; its record.

        After so many seconds or failed attempts, where they are given, the record as it is then;
        and so where it waits for what is switched off, with that as its error.
        """
        told: float | None = None
        waited = 0.0
        while True:
            record = await self.find(id)
            if report and record.done is not None and (told is None or record.done > told):
                told = record.done
                await report(record.done, record.total, record.message)
            if record.ended or (seconds is not None and waited >= seconds):
                return record
            waits = record.status is RunStatus.QUEUED
            if attempts is not None and waits and record.attempts >= attempts:
                return record
            if waits and (why := self.why_waiting(record.workflow)):
                return replace(record, error=why)
            await self.pause(LOOK_SECONDS)
            waited += LOOK_SECONDS

    async def cancel(self, tx: Transaction, id: str) -> None:
        """Cancel a run: at once if it waits, else at its next checkpoint."""

        def change(connection: Connection) -> None:
            if not cancel_run(connection, id, now=stamp(self.clock())):
                raise _conflict(connection, id, "cancelled")

        await tx.run(change)

    async def retry(self, tx: Transaction, id: str) -> None:
        """Let a run that failed or was cancelled go on from its last checkpoint."""

        def change(connection: Connection) -> None:
            record = find_run(connection, id)
            alone = self._alone_as(record) if record else None
            try:
                done = retry_run(connection, id, now=stamp(self.clock()), alone=alone)
            except IntegrityError:
                raise RunConflict(BESIDE_ANOTHER) from None
            if not done:
                raise _conflict(connection, id, "retried")

        await tx.run(change)
        tx.after_commit(self.wake.set)

    def _alone_as(self, record: RunRecord) -> str | None:
        declared = self.declared.get(record.workflow)
        if declared is None:
            return record.workflow
        return declared.alone_as(record.workflow, record.arguments)

    def of(self, pack: str) -> "Workflows":
        """The workflows of one pack."""
        return Workflows(self, pack)


@dataclass(frozen=True, slots=True)
class Workflows:
    """The workflows of one pack, by the names it gave them."""

    runs: Runs
    pack: str

    @property
    def names(self) -> Collection[str]:
        """Every workflow of the pack."""
        start = f"{self.pack}/"
        return [one.removeprefix(start) for one in self.runs.declared if one.startswith(start)]

    async def start(
        self,
        tx: Transaction,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        key: str | None = None,
    ) -> str:
        """Start a run with this transaction: it exists if that commits. Returns its id.

        The same key again is the same run. Where a workflow is `alone`, one that is under way is
        joined, and these arguments count for nothing; where it names an argument in which runs are
        `alike`, only one with the same. In a dry run, nothing is started.
        """
        row = self.runs.new_row(f"{self.pack}/{name}", arguments, key=key, call=tx.call)
        return await self.runs.add(tx, row)

    async def start_now(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        call: str | None = None,
    ) -> str:
        """Start a run in a commit of its own, for who waits for it within one call.

        A tool that does so writes `OUTSIDE`: its audit row is stored before, and is `ctx.tx.call`.
        """
        async with self.runs.database.transaction() as tx:
            tx.call = call
            return await self.start(tx, name, arguments, key=key)

    async def wait(
        self,
        id: str,
        report: Report | None = None,
        *,
        seconds: float | None = None,
        attempts: int | None = None,
    ) -> RunRecord:
        """Wait until a run ends, wherever it runs, and tell its progress; its record.

        After so many seconds or failed attempts, where they are given, the record as it is then;
        and so where it waits for what is switched off, with that as its error.
        """
        await self.find(id)
        return await self.runs.wait(id, report, seconds=seconds, attempts=attempts)

    async def find(self, id: str) -> RunRecord:
        """The pack's run of this id; raises `RunNotFound`, for another pack's as well."""
        found = await self.runs.find(id)
        if not found.workflow.startswith(f"{self.pack}/"):
            raise RunNotFound(f"There is no run {id}.")
        return found

    async def list(
        self, name: str | None = None, *, status: RunStatus | None = None, limit: int = 50
    ) -> list[RunRecord]:
        """The newest runs of the pack, or of one workflow of it, newest first."""
        workflow = f"{self.pack}/{name}" if name else None
        return await self.runs.list(pack=self.pack, workflow=workflow, status=status, limit=limit)


def insert_or_join(connection: Connection, row: dict[str, Any]) -> str:
    """Store a run, or find the one that it joins, although that may end at this moment."""
    for _ in range(10):
        if id := insert_run(connection, row):
            return id
    raise RunConflict(f"Runs of {row['workflow']} end as quickly as they are started. Try again.")


def _conflict(connection: Connection, id: str, what: str) -> Exception:
    record = find_run(connection, id)
    if record is None:
        return RunNotFound(f"There is no run {id}.")
    return RunConflict(f"The run is {record.status.value}, so it cannot be {what}.")
