"""`toolgate content`: bring content into a project."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import opening
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, help_when_alone, load_settings
from toolgate.cli.output import bad, good, note, on_terminal, printable, say, say_json
from toolgate.cli.problems import ExitCode, Stop

if TYPE_CHECKING:
    from rich.progress import Progress

    from toolgate.content_import import Report, UnknownProject, Wanted
    from toolgate.settings import Settings

File = Annotated[Path, typer.Argument(metavar="FILE", help="A .csv with a header, or a .jsonl.")]
Project = Annotated[
    str, typer.Option("--project", metavar="SLUG", help="The project it belongs to.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="entities, relations, blocks or performance; else told from the columns.",
    ),
]
CreateProject = Annotated[
    str | None, typer.Option(metavar="NAME", help="Make the project if there is none yet.")
]
Start = Annotated[
    str | None, typer.Option(metavar="DATE", help="First day of a Search Console export.")
]
End = Annotated[str | None, typer.Option(metavar="DATE", help="Its last day.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check every row, store nothing.")]

MOST_SHOWN = 50
MOST_SLUGS = 20
LARGE = 20_000_000
PATIENCE = 2.0
STEP = 1 << 16


def group() -> typer.Typer:
    """The command group."""
    app = typer.Typer(help="Bring content into a project.")
    app.callback(invoke_without_command=True)(help_when_alone)
    app.command("import")(import_)
    return app


def import_(
    ctx: typer.Context,
    file: File,
    *,
    project: Project,
    kind: Kind = None,
    create_project: CreateProject = None,
    start: Start = None,
    end: End = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Store a file's rows in a project: all of them, or none if one is refused.

    Rows that are there already are replaced. Search Console exports need --start and --end.
    """
    from toolgate.content_import import Wanted

    _check(file, kind)
    wanted = Wanted(project, kind, create_project, start, end, dry_run)
    settings = load_settings(ctx, config, data)
    with _progress(file, shown=on_terminal() and not as_json) as seen:
        report = opening.wait_for(lambda: _import(settings, file, wanted, seen))
    if as_json:
        say_json(_as_json(file, project, report))
    else:
        _tell(file, wanted, report)
    if report.refused:
        raise typer.Exit(ExitCode.FAILED)


def _check(file: Path, kind: str | None) -> None:
    """Stop before the database is opened if the command line is wrong."""
    from toolgate.content_import import KINDS, BadFile, readable

    if kind is not None and kind not in KINDS:
        raise Stop(f"There is no kind {kind!r}. Kinds: {', '.join(KINDS)}.")
    try:
        readable(file)
    except BadFile as problem:
        raise Stop(str(problem)) from None


async def _import(
    settings: "Settings", file: Path, wanted: "Wanted", seen: Callable[[int], None]
) -> "Report":
    from toolgate.content_import import BadFile, UnknownProject, load

    async with opening.database(settings, existing=wanted.create_project is None) as database:
        try:
            return await load(database, file, wanted, seen)
        except UnknownProject as problem:
            raise Stop(_unknown(wanted.project, problem)) from None
        except BadFile as problem:
            raise Stop(f"{printable(problem)} Nothing was stored.", ExitCode.FAILED) from None


def _unknown(slug: str, problem: "UnknownProject") -> str:
    known = ", ".join(problem.known[:MOST_SLUGS]) or "none"
    more = len(problem.known) - MOST_SLUGS
    known += f" and {more} more" if more > 0 else ""
    make = "--create-project NAME makes it"
    return f"There is no project {slug!r} (there are: {known}); {make}."


def _as_json(file: Path, project: str, report: "Report") -> dict[str, object]:
    return {
        "file": str(file),
        "kind": report.kind,
        "project": project,
        "stored": report.stored,
        "refused": [{"line": line, "reason": reason} for line, reason in report.refused],
    }


def _tell(file: Path, wanted: "Wanted", report: "Report") -> None:
    if not report.refused:
        done = "would be stored" if wanted.dry_run else "stored"
        rows = "1 row" if report.rows == 1 else f"{report.rows:,} rows"
        return say(f"{good('Done:')} {rows} of {report.kind} {done} in {wanted.project}.")
    refused = len(report.refused)
    what = f"{refused:,} of {report.rows:,} rows of {printable(file.name)} refused"
    note(f"{bad('Error:')} {what}, so nothing was stored.")
    for line, reason in report.refused[:MOST_SHOWN]:
        note(f"  line {line}: {printable(reason)}")
    if refused > MOST_SHOWN:
        note(f"  and {refused - MOST_SHOWN:,} more")


@contextmanager
def _progress(file: Path, *, shown: bool) -> Generator[Callable[[int], None]]:
    """Count the bytes read; on a terminal a bar shows them once it takes long."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    # Imported here: only a person who waits needs a bar.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*parts, console=Console(stderr=True), transient=True)
    try:
        yield _counting(bar, file)
    finally:
        bar.stop()


def _counting(bar: "Progress", file: Path) -> Callable[[int], None]:
    size = file.stat().st_size
    task = bar.add_task("Importing", total=size)
    shown_from = time.monotonic() + (0 if size >= LARGE else PATIENCE)
    waiting = 0

    def seen(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting < STEP:
            return
        bar.advance(task, waiting)
        waiting = 0
        if not bar.live.is_started and time.monotonic() >= shown_from:
            bar.start()

    return seen
