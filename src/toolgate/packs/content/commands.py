"""`toolgate content`: bring content into a project."""

import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import failure, note, on_terminal, printable, say, say_json, success
from toolgate.cli.problems import ExitCode, Stop

if TYPE_CHECKING:
    from rich.progress import Progress

    from toolgate.db.engine import Database
    from toolgate.packs.content.importing import ImportOptions, Report, UnknownProject
    from toolgate.sections import Settings

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A .csv file with a header, or a .jsonl file.")
]
Project = Annotated[
    str, typer.Option("--project", metavar="SLUG", help="The project to import into.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="entities, relations, blocks or performance; default: detected from the columns.",
    ),
]
CreateProject = Annotated[
    str | None, typer.Option(metavar="NAME", help="Create the project if it does not exist.")
]
Start = Annotated[
    str | None, typer.Option(metavar="DATE", help="First day of a Search Console export.")
]
End = Annotated[
    str | None, typer.Option(metavar="DATE", help="Last day of a Search Console export.")
]
Page = Annotated[
    str | None, typer.Option(metavar="URL", help="The page, for an export of queries alone.")
]
Query = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The query, for an export of pages alone.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check every row but store nothing.")]

MAX_SHOWN = 50
MAX_SLUGS = 20
LARGE = 20_000_000
PATIENCE = 2.0
STEP = 1 << 16


def group() -> typer.Typer:
    """The command group."""
    return command_group("Import content into a project.", import_=import_)


def import_(
    ctx: typer.Context,
    file: File,
    *,
    project: Project,
    kind: Kind = None,
    create_project: CreateProject = None,
    start: Start = None,
    end: End = None,
    page: Page = None,
    query: Query = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Import a file's rows into a project: all of them, or none if one is refused.

    Existing rows are replaced; fields that the file lacks keep their values. Search Console
    exports need --start and --end, and --page or --query if they lack that column.
    """
    from toolgate.packs.content.importing import ImportOptions

    _check(file, kind)
    options = ImportOptions(project, kind, create_project, start, end, page, query, dry_run)
    settings = command_settings(ctx, config, data)
    trial = dry_run and create_project is not None
    missing = environment.run_async(lambda: _missing_file(settings)) if trial else None
    with _progress(file, options, shown=on_terminal() and not as_json) as progress:
        report = environment.run_async(lambda: _import(settings, file, options, missing, progress))
    if as_json:
        say_json(_as_json(file, project, report))
    else:
        _print_report(file, options, report)
        if trial and report.new_project and not report.refused:
            what = f"Database {missing} and project" if missing else "Project"
            say(f"{what} {project} would be created first.")
    if report.refused:
        raise typer.Exit(ExitCode.FAILED)


def _check(file: Path, kind: str | None) -> None:
    """Stop before the database is opened if the command line is wrong."""
    from toolgate.packs.content.importing import KINDS, BadFile, check_file

    if kind is not None and kind not in KINDS:
        raise Stop(f"There is no kind {kind!r}. Kinds: {', '.join(KINDS)}.")
    try:
        check_file(file)
    except BadFile as problem:
        raise Stop(str(problem)) from None


async def _import(
    settings: "Settings",
    file: Path,
    options: "ImportOptions",
    missing: Path | None,
    progress: Callable[[int], None],
) -> "Report":
    from toolgate.packs.content.importing import BadFile, UnknownProject, import_file

    existing = options.create_project is None
    place = (
        _temporary_database(settings)
        if missing
        else environment.database(settings, existing=existing)
    )
    async with place as database:
        try:
            return await import_file(database, file, options, progress)
        except UnknownProject as problem:
            raise Stop(_unknown_project(options.project, problem)) from None
        except BadFile as problem:
            raise Stop(f"{printable(problem)} Nothing was stored.", ExitCode.FAILED) from None


async def _missing_file(settings: "Settings") -> Path | None:
    """The file of an embedded database that is not there yet."""
    from toolgate.data_folder import embedded_file
    from toolgate.db.engine import Database

    database = Database(settings.database_url)
    file = embedded_file(database)
    await database.close()
    return file if file and not file.exists() else None


@asynccontextmanager
async def _temporary_database(settings: "Settings") -> "AsyncGenerator[Database]":
    """An empty database to check rows against where there is none: a dry run leaves no file."""
    from toolgate.storage_sections import DatabaseSettings

    with tempfile.TemporaryDirectory() as folder:
        trial = {"data": Path(folder), "database": DatabaseSettings(url=None)}
        async with environment.database(settings.model_copy(update=trial)) as database:
            yield database


def _unknown_project(slug: str, problem: "UnknownProject") -> str:
    slugs = ", ".join(problem.known[:MAX_SLUGS]) or "none"
    more = len(problem.known) - MAX_SLUGS
    slugs += f" and {more} more" if more > 0 else ""
    make = "--create-project NAME creates it"
    return f"There is no project {slug!r} (projects: {slugs}); {make}."


def _as_json(file: Path, project: str, report: "Report") -> dict[str, object]:
    return {
        "file": str(file),
        "kind": report.kind,
        "project": project,
        "stored": report.stored,
        "refused": [{"line": line, "reason": reason} for line, reason in report.refused],
    }


def _print_report(file: Path, options: "ImportOptions", report: "Report") -> None:
    if not report.refused:
        done = "would be stored" if options.dry_run else "stored"
        rows = "1 row" if report.rows == 1 else f"{report.rows:,} rows"
        return say(f"{success('Done:')} {rows} of {report.kind} {done} in {options.project}.")
    count = len(report.refused)
    what = f"{count:,} of {report.rows:,} rows of {printable(file.name)} refused"
    note(f"{failure('Error:')} {what}, so nothing was stored.")
    for line, reason in report.refused[:MAX_SHOWN]:
        note(f"  line {line}: {printable(reason)}")
    if count > MAX_SHOWN:
        note(f"  and {count - MAX_SHOWN:,} more")


@contextmanager
def _progress(
    file: Path, options: "ImportOptions", *, shown: bool
) -> Generator[Callable[[int], None]]:
    """Count the bytes checked and stored; on a terminal a bar shows them once it takes long."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    # Imported here: only a person who waits needs a bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    description, share = TextColumn("{task.description}"), TaskProgressColumn()
    parts = (description, BarColumn(), share, TimeRemainingColumn())
    bar = Progress(*parts, console=Console(stderr=True), transient=True)
    try:
        yield _counting(bar, file, passes=1 if options.dry_run else 2)
    finally:
        bar.stop()


def _counting(bar: "Progress", file: Path, passes: int) -> Callable[[int], None]:
    size = file.stat().st_size
    task = bar.add_task("Importing", total=size * passes)
    shown_from = time.monotonic() + (0 if size >= LARGE else PATIENCE)
    waiting = 0

    def progress(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting < STEP:
            return
        bar.advance(task, waiting)
        waiting = 0
        if not bar.live.is_started and time.monotonic() >= shown_from:
            bar.start()

    return progress
