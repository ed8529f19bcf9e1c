"""`toolgate backup`: the whole database in one file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import note, say, say_json, success, warning
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.progress import Bar, progress_bar
from toolgate.cli.stored_backups import list_stored

if TYPE_CHECKING:
    from toolgate.settings import Settings

Target = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="File to create; default: toolgate-TIME.jsonl.gz in this folder.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")]
Listed = Annotated[
    bool, typer.Option("--list", help="List the backups that `create_backup` stored; make none.")
]
MEGABYTE = 1_000_000


def backup(
    ctx: typer.Context,
    file: Target = None,
    *,
    force: Force = False,
    listed: Listed = False,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole database, as it is at one moment, to a file; servers may go on writing.

    The file holds users' data and hashes of keys; it is readable for its owner alone.
    """
    if listed:
        return list_stored(command_settings(ctx, config, data), as_json=as_json)
    path = file or Path(f"toolgate-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl.gz")
    if path.exists() and (path.is_dir() or not force):
        step = "Name another." if path.is_dir() else "Name another, or overwrite it with --force."
        raise Stop(f"{path} is there already. {step}")
    if not path.parent.is_dir():
        raise Stop(f"There is no folder {path.parent}. Make it, or name another file.")
    settings = command_settings(ctx, config, data)
    with progress_bar("Writing rows") as bar:
        told = environment.run_async(lambda: _backup(settings, path, bar))
    size = path.stat().st_size
    answer = summary(told) | {"file": str(path), "bytes": size}
    elsewhere = documents_elsewhere(settings)
    if as_json:
        return say_json(answer | {"notIncluded": elsewhere + told["strangers"]})
    rows, moment = answer["rows"], answer["moment"]
    say(f"{success('Done:')} {rows:,} rows as of {moment} in {path} ({size / MEGABYTE:,.1f} MB).")
    for what in elsewhere:
        note(f"{warning('Not in it:')} {what}.")
    if told["strangers"]:
        note(f"{warning('Not in it:')} tables of others: {', '.join(told['strangers'])}.")
    return None


async def _backup(settings: "Settings", path: Path, bar: Bar) -> dict[str, Any]:
    from toolgate.backups.archive import BadBackup
    from toolgate.backups.dump import Request, write_backup
    from toolgate.backups.files import FileInUse, new_file
    from toolgate.gate.operators import note_operator

    async with environment.database(settings, existing=True) as database:
        try:
            with new_file(path) as file:
                await database.write(lambda connection: note_operator(connection, "backup"))
                return await write_backup(database, _to(file), Request(progress=bar))
        except (FileInUse, BadBackup) as problem:
            raise Stop(str(problem), ExitCode.FAILED) from None
        except OSError as problem:
            problem.filename = problem.filename or str(path)
            raise


def _to(file: Any) -> Any:
    def write(data: bytes) -> None:
        file.write(data)

    return write


def summary(told: dict[str, Any]) -> dict[str, Any]:
    """What is said of a backup."""
    return {
        "moment": told["moment"]["time"],
        "rows": sum(one["rows"] for one in told["tables"].values()),
        "tables": {name: one["rows"] for name, one in told["tables"].items()},
        "revisions": {name or "toolgate": one for name, one in told["revisions"].items()},
    }


def documents_elsewhere(settings: "Settings") -> list[str]:
    """Documents that are not in the database, and so in none of its backups."""
    from toolgate.document_stores import firestore_of, packs_with_documents

    places = {pack: firestore_of(settings, pack) for pack in packs_with_documents(settings)}
    return [f"documents of pack {pack}: {place}" for pack, place in places.items() if place]
