"""Making a backup: a workflow, so that one runs at a time, and goes on after a crash.

Each attempt has a name of its own. A worker that was taken for dead may still write under its old
one, so what it leaves is never part of another's.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolgate.backups.dump import Progress, Request
from toolgate.backups.stored import StoredBackups, new_name, result_of
from toolgate.gate.context import Report
from toolgate.gate.errors import Conflict, Unavailable
from toolgate.gate.offer import Site
from toolgate.packs.backend.backup.paths import path_matcher
from toolgate.packs.backend.backup.settings import BackupSettings
from toolgate.ports.documents import Merge, StoreUnavailable
from toolgate.ports.users import timestamp_record
from toolgate.workflows.declarations import Run, RunFailed, RunStatus, RunStopped, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

NAME = "create-backup"
EXPRESSION = "deletionRegex"
META, STATS = "meta", "stats"
TOLD_SECONDS = 1.0
"""Between two checkpoints, which are commits."""
FAILED = "The backup failed, and is tried again."
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backups:
    """Starts backups, and makes them."""

    site: Site
    settings: BackupSettings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def without_documents(self) -> bool:
        """Whether the pack's documents are elsewhere, and so in no backup."""
        return not self.site.documents.joins_transaction

    async def create(self, expression: str | None, call: str | None, report: Report | None) -> str:
        """Make one, or join the one that is under way; its name, once it is whole."""
        arguments = {EXPRESSION: expression} if expression else {}
        workflows = self.site.workflows
        id = await workflows.start_now(NAME, arguments, call=call)
        record = await workflows.find(id)
        if record.arguments != arguments:
            raise Conflict(
                f"A backup with another {EXPRESSION} is being made. Try again when it is done."
            )
        record = await workflows.wait(id, report)
        if record.status is RunStatus.CANCELLED:
            raise Conflict("The backup was cancelled. Call again to make another.")
        if record.status is not RunStatus.SUCCEEDED or record.result is None:
            raise Unavailable(record.error or "The backup failed.")
        return record.result["name"]

    async def make(self, run: "Run[BackendWorld]") -> dict[str, Any]:
        """Make one, whatever an attempt before has left."""
        try:
            return await self._make(run)
        except RunStopped:
            raise
        except StoreUnavailable as problem:
            await self._note(run, str(problem))
            raise RunFailed(str(problem)) from problem
        except Exception:
            with contextlib.suppress(Exception):
                await self._note(run, FAILED)
            raise

    async def _make(self, run: "Run[BackendWorld]") -> dict[str, Any]:
        stored = StoredBackups(self.site.blobs())
        await stored.remove_unfinished()
        name = new_name(self.clock())
        await run.checkpoint({"name": name})
        expression: str | None = run.arguments.get(EXPRESSION)
        request = Request(
            path_matcher(expression) if expression else None,
            expression,
            _checkpoints(run, name),
        )
        told = await stored.make(
            self.site.database, name, request, before_end=lambda: run.checkpoint({"name": name})
        )
        days = self.settings.days
        oldest = self.clock() - timedelta(days=days) if days else None
        await stored.keep(self.settings.keep, oldest)
        await self._note(run, None)
        rows = sum(one["rows"] for one in told["tables"].values())
        return {"name": name, "moment": told["moment"]["time"], "rows": rows}

    async def _note(self, run: "Run[BackendWorld]", error: str | None) -> None:
        """Note in the statistics how the last backup ended."""
        last = {
            "date": timestamp_record(self.clock()),
            "status": {"success": error is None, "error": error},
        }
        async with run.transaction() as tx:
            fields = {"backups": {"lastBackup": last}}
            await self.site.documents.write(tx, Merge(META, STATS, fields))


def _checkpoints(run: "Run[BackendWorld]", name: str) -> Progress:
    """Tells how far it has come, now and then, from the thread that writes."""
    loop = asyncio.get_running_loop()
    told = time.monotonic()

    def note(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told < TOLD_SECONDS:
            return
        told = time.monotonic()
        message = f"{done:,} of {total:,} rows"
        coming = run.checkpoint({"name": name}, done=done, total=total, message=message)
        result_of(asyncio.run_coroutine_threadsafe(coming, loop))

    return note


async def _run(run: "Run[BackendWorld]") -> dict[str, Any]:
    return await run.world.backups.make(run)


WORKFLOW: "Workflow[BackendWorld]" = Workflow(
    name=NAME, summary="Writes the whole database to the blobs of the pack.", run=_run
)
