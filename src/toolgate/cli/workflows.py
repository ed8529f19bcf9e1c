"""`toolgate workflows`: background work, as it is stored."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import definitions, note, printable, say, say_json, table, warning
from toolgate.cli.problems import Stop
from toolgate.cli.progress import progress_line

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgate.db.engine import Database
    from toolgate.db.transactions import Transaction
    from toolgate.gate.context import Report
    from toolgate.settings import Settings
    from toolgate.workflows.declarations import RunRecord
    from toolgate.workflows.runs import Runs

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, as `list` shows it.")]
OfWorkflow = Annotated[
    str | None,
    typer.Option("--workflow", metavar="NAME", help="Only runs of this one, as PACK/NAME."),
]
InStatus = Annotated[
    str | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        help="Only runs that are queued, running, succeeded, failed or cancelled.",
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
Follow = Annotated[bool, typer.Option("--follow", help="Show its progress until it ends.")]
Work = Callable[["Runs"], Awaitable[Any]]


def group() -> typer.Typer:
    """The commands about background work."""
    return command_group(
        "Background work: runs of workflows.",
        list=list_,
        show=show,
        retry=retry,
        cancel=cancel,
        resume=resume,
    )


def list_(
    ctx: typer.Context,
    *,
    workflow: OfWorkflow = None,
    status: InStatus = None,
    limit: Limit = 50,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from toolgate.db.workflow_holds import RESTING
    from toolgate.workflows.declarations import RunStatus

    settings = command_settings(ctx, config, data)
    if status is not None and status not in list(RunStatus):
        options = ", ".join(RunStatus)
        raise Stop(f"There is no status {status!r}. Use one of: {options}.")
    wanted = RunStatus(status) if status else None
    records: list[RunRecord] = _run(
        settings, lambda runs: runs.list(workflow=workflow, status=wanted, limit=limit)
    )
    if as_json:
        return say_json([asdict(one) for one in records])
    if _run(settings, _held_since):
        note(f"{warning('Resting:')} {RESTING}")
    if not records:
        return say(f"There are no such runs.{_unknown(settings, workflow)}")
    table(("run", "workflow", "status", "progress", "started", "error"), map(_row, records))


def show(
    ctx: typer.Context,
    run: RunId,
    *,
    follow: Follow = False,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show one run; with --follow, its progress until it ends."""
    settings = command_settings(ctx, config, data)
    with progress_line(run) as bar:
        tell = bar or (None if as_json else _say_progress)
        record: RunRecord = _run(
            settings, lambda runs: runs.wait(run, tell) if follow else runs.find(run)
        )
    if as_json:
        return say_json(asdict(record))
    told = {name: value for name, value in asdict(record).items() if value not in (None, {}, False)}
    definitions({name: printable(_shown(value)) for name, value in told.items()})


def retry(
    ctx: typer.Context,
    run: RunId,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Let a run that failed or was cancelled go on from its last checkpoint."""
    settings = command_settings(ctx, config, data)
    record = _change(settings, run, "workflows.retry", lambda runs, tx: runs.retry(tx, run))
    if as_json:
        return say_json({"id": run, "status": record.status})
    say("The run waits for its turn; a running server takes it up within a second.")


def cancel(
    ctx: typer.Context,
    run: RunId,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a run: at once if it waits, else at its next checkpoint."""
    settings = command_settings(ctx, config, data)
    record = _change(settings, run, "workflows.cancel", lambda runs, tx: runs.cancel(tx, run))
    if as_json:
        return say_json({"id": run, "status": record.status, "cancelling": record.cancelling})
    say("The run is cancelled." if record.ended else "The run stops at its next checkpoint.")


def resume(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Let work start by itself again in a restored database: mails, campaigns, schedules.

    Only when the original no longer runs: what waits in both would be sent twice.
    """
    from toolgate.db.workflow_holds import resume_schedules
    from toolgate.gate.operators import note_operator

    def go_on(connection: "Connection") -> bool:
        resumed = resume_schedules(connection)
        if resumed:
            note_operator(connection, "workflows.resume")
        return resumed

    settings = command_settings(ctx, config, data)
    resumed = _run(settings, lambda runs: runs.database.write(go_on))
    if as_json:
        return say_json({"resumed": resumed})
    if not resumed:
        return say("Nothing rests here: work starts by itself.")
    say("Work starts by itself again; a running server knows within ten seconds.")


async def _held_since(runs: "Runs") -> str | None:
    from toolgate.db.workflow_holds import held_since

    return await runs.database.read(held_since)


def _unknown(settings: "Settings", workflow: str | None) -> str:
    """What to say of a workflow that no pack has: it may be misspelled."""
    from toolgate.app import offers_of, workflows_of

    names = sorted(workflows_of(offers_of(settings)))
    if workflow is None or workflow in names:
        return ""
    return f" No pack in use has a workflow {workflow!r}. Workflows: {', '.join(names) or 'none'}."


def _run(settings: "Settings", work: Work) -> Any:
    """Do something about runs, and say plainly why it cannot be done."""
    from toolgate.app import offers_of, workflows_of
    from toolgate.workflows.runs import RunConflict, RunNotFound, Runs

    async def on(database: "Database") -> Any:
        return await work(Runs(database, workflows_of(offers_of(settings))))

    try:
        return environment.run_on_database(settings, on)
    except RunNotFound as problem:
        raise Stop(f"{problem} `toolgate workflows list` shows them.") from None
    except RunConflict as problem:
        raise Stop(str(problem)) from None


def _change(
    settings: "Settings",
    run: str,
    command: str,
    change: "Callable[[Runs, Transaction], Awaitable[None]]",
) -> "RunRecord":
    from toolgate.gate.operators import note_operator

    async def work(runs: "Runs") -> "RunRecord":
        async with runs.database.transaction() as tx:
            await change(runs, tx)
            await tx.run(lambda connection: note_operator(connection, command))
        return await runs.find(run)

    return _run(settings, work)


def _shown(value: Any) -> Any:
    """A value as people read it: objects as JSON, numbers without a needless `.0`."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else value


def _row(record: "RunRecord") -> tuple[str, ...]:
    return (
        record.id,
        record.workflow,
        "cancelling" if record.cancelling and not record.ended else record.status.value,
        _progress(record.done, record.total, None),
        (record.started_at or "-")[:19].replace("T", " "),
        record.error or "",
    )


def _progress(done: float | None, total: float | None, message: str | None) -> str:
    if done is None:
        return "-"
    of = f" of {total:g}" if total is not None else ""
    return f"{done:g}{of}{f' {message}' if message else ''}"


async def _tell(done: float, total: float | None, message: str | None) -> None:
    say(printable(_progress(done, total, message)))


_say_progress: "Report" = _tell
