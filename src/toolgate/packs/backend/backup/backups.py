"""Making a backup: a workflow, so that one runs at a time, and goes on after a crash.

Each attempt has a name of its own. A worker that was taken for dead may still write under its old
one, so what it leaves is never part of another's.
"""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolgate.backups.apart import ReadingFailed, Tell
from toolgate.backups.archive import BadBackup
from toolgate.backups.reading_process import Order
from toolgate.backups.stored import StoredBackups, new_name
from toolgate.gate.context import Report
from toolgate.gate.errors import Conflict, Unavailable
from toolgate.gate.offer import Site
from toolgate.packs.backend.backup.settings import BackupSettings
from toolgate.ports.documents import Merge, StoreUnavailable
from toolgate.ports.users import timestamp_record
from toolgate.workflows.declarations import Run, RunFailed, RunStatus, RunStopped, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

NAME = "create-backup"
EXPRESSION = "deletionRegex"
META, STATS = "meta", "stats"
MAX_SHOWN = 500
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
        except (StoreUnavailable, BadBackup) as problem:
            logger.warning("a backup failed: %s (%s)", problem, _first_line(problem.__cause__))
            await self._note(run, str(problem))
            raise RunFailed(str(problem)) from problem
        except ReadingFailed as problem:
            with contextlib.suppress(Exception):
                await self._note(run, str(problem))
            raise Unavailable(str(problem)) from problem
        except Exception:
            with contextlib.suppress(Exception):
                await self._note(run, FAILED)
            raise

    async def _make(self, run: "Run[BackendWorld]") -> dict[str, Any]:
        stored = StoredBackups(self.site.blobs())
        await stored.remove_unfinished()
        name = new_name(self.clock())
        await run.checkpoint({"name": name})
        url = self.site.database.url.render_as_string(hide_password=False)
        told = await stored.make(
            name,
            Order(url, run.arguments.get(EXPRESSION)),
            tell=_checkpoints(run, name),
            before_end=lambda: run.checkpoint({"name": name}),
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


def _first_line(cause: BaseException | None) -> str:
    """What a library said, for the log alone: it may name folders and hosts."""
    return str(cause or "").partition("\n")[0][:MAX_SHOWN] or "no more is known"


def _checkpoints(run: "Run[BackendWorld]", name: str) -> Tell:
    """Stores how far it has come; raises where the run is not to go on."""

    async def note(done: int, total: int) -> None:
        message = f"{done:,} of {total:,} rows"
        await run.checkpoint({"name": name}, done=done, total=total, message=message)

    return note


async def _run(run: "Run[BackendWorld]") -> dict[str, Any]:
    return await run.world.backups.make(run)


WORKFLOW: "Workflow[BackendWorld]" = Workflow(
    name=NAME,
    summary="Writes the whole database to the blobs of the pack.",
    run=_run,
    acts_as=("create_backup",),
)
