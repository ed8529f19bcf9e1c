"""`toolgate restore`: a backup back into an empty database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import note, say, say_json, success, warning
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgate.backups.load import Restore, Restored
    from toolgate.db.engine import Database
    from toolgate.settings import Settings

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A file of `toolgate backup`, or the name of a stored backup."
    ),
]
Replace = Annotated[
    str | None,
    typer.Option(
        metavar="DATABASE",
        help="Delete what the database holds; write its name (toolgate.db, or PostgreSQL's).",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="PACK", help="Leave the records of this pack out."),
]


def restore(
    ctx: typer.Context,
    file: Source,
    *,
    replace: Replace = None,
    without: Without = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Read a backup into an empty database, SQLite or PostgreSQL: all of it, or nothing.

    Stop every server that uses the database first.
    """
    from toolgate.db.workflow_holds import RESTING

    settings = command_settings(ctx, config, data)
    with progress_bar("Reading rows") as bar:
        done = environment.run_async(lambda: _restore(settings, file, replace, without or [], bar))
    rows = sum(done.rows.values())
    moment = done.head["moment"]["time"]
    disabled = _disabled(settings, done)
    if as_json:
        tables = {"rows": rows, "tables": done.rows, "moment": moment}
        return say_json({"file": file, **tables, "packsNotEnabled": disabled, "resting": True})
    say(f"{success('Done:')} {rows:,} rows as of {moment} restored.")
    note(f"{warning('Resting:')} {RESTING}")
    if disabled:
        what = "records are there, and are used once it is enabled (packs.enabled)"
        note(f"{warning('Not enabled:')} {', '.join(disabled)}; a pack's {what}.")
    return None


def _disabled(settings: "Settings", done: "Restored") -> list[str]:
    from toolgate.app import offers_of

    enabled = {offer.pack.name for offer in offers_of(settings)}
    owners = [name for name in done.head["revisions"] if name and name not in enabled]
    return [name for name in owners if any(one.startswith(f"{name}_") for one in done.rows)]


async def _restore(
    settings: "Settings", file: str, replace: str | None, without: list[str], bar: Bar
) -> "Restored":
    from toolgate.backups.archive import ArchiveReader, BadBackup
    from toolgate.backups.head import checked_head
    from toolgate.backups.load import NotEmpty, chosen_schemas, read_backup
    from toolgate.db.engine import Database

    database = Database(settings.database_url)
    try:
        if replace is not None:
            _check_name(settings, database, replace)
        async with _opened(settings, file, bar) as source:
            archive = await _in_thread(ArchiveReader, source)
            checked_head(archive.head)
            how = _how(settings, archive.head, without, replace=replace is not None)
            chosen_schemas(archive.head, how)
            async with _made_folder(settings, database):
                done = await read_backup(database, archive, how)
        await _complete_index(settings, database)
        return done
    except BadBackup as problem:
        raise Stop(f"{problem} Nothing was changed.", ExitCode.FAILED) from None
    except NotEmpty as problem:
        name = _name_of(database)
        step = f"Name another database (--data, database.url), or replace it: --replace {name}."
        raise Stop(f"{problem} {step}") from None
    finally:
        await database.close()


async def _in_thread(work: Any, *args: Any) -> Any:
    import anyio.to_thread

    return await anyio.to_thread.run_sync(work, *args)


def _check_name(settings: "Settings", database: "Database", name: str) -> None:
    from toolgate.cli.running_server import running_server

    right = _name_of(database)
    if name != right:
        raise Stop(f"The database is called {right!r}, not {name!r}: write --replace {right}.")
    if server := running_server(settings):
        raise Stop(f"A toolgate answers at {server.url}. Stop it first.", ExitCode.FAILED)


def _name_of(database: "Database") -> str:
    name = database.url.database or ""
    return Path(name).name if database.dialect == "sqlite" else name


def _how(
    settings: "Settings", head: dict[str, Any], without: list[str], *, replace: bool
) -> "Restore":
    from toolgate import packs
    from toolgate.app import offers_of, schemas_of
    from toolgate.backups.load import Restore

    enabled = schemas_of(offers_of(settings))
    if needed := [one.pack for one in enabled if one.pack in without]:
        raise Stop(f"Pack {needed[0]!r} is enabled, so its records belong here.")
    there = [name for name in packs.known_names() if name in head["revisions"]]
    of_file = schemas_of(packs.offers(name for name in there if name not in without))
    return Restore(of_file, enabled, without, replace=replace, finish=_note)


def _note(connection: "Connection") -> None:
    from toolgate.gate.operators import note_operator

    note_operator(connection, "restore")


@asynccontextmanager
async def _opened(settings: "Settings", file: str, bar: Bar) -> AsyncGenerator[Any]:
    """The bytes of a backup; the bar follows them."""
    if (local := _local(file, bar)) is not None:
        with local:
            yield local
    elif (stored := await _stored(settings, file, bar)) is not None:
        yield stored
    else:
        step = "Name a file of `toolgate backup`, or one that `toolgate backup --list` shows"
        raise Stop(f"There is no backup {file}. {step} (setting blobs.url says where it looks).")


def _local(file: str, bar: Bar) -> "_Counted | None":
    path = Path(file)
    return _Counted(path.open("rb"), path.stat().st_size, bar) if path.is_file() else None


async def _stored(settings: "Settings", name: str, bar: Bar) -> Any:
    """A backup among the blobs of a pack; None where there is none of this name."""
    from toolgate.app import offers_of
    from toolgate.backups.stored import NAME, PieceReader, StoredBackups
    from toolgate.blob_stores import BlobStores

    if not NAME.fullmatch(name):
        return None
    stores = BlobStores(settings, existing=True)
    for offer in offers_of(settings):
        backups = StoredBackups(stores.of(offer.pack.name))
        for one in await backups.whole():
            if one.name == name:
                return PieceReader(backups.read(name), _Follower(one.size, bar))
    return None


class _Follower:
    """Moves the bar by what was read."""

    def __init__(self, size: int, bar: Bar) -> None:
        self._size, self._bar, self._read = size, bar, 0

    def __call__(self, count: int) -> None:
        self._read += count
        self._bar(self._read, self._size)


class _Counted:
    """A file whose reading moves the bar."""

    def __init__(self, file: Any, size: int, bar: Bar) -> None:
        self._file, self._follow = file, _Follower(size, bar)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self._follow(len(data))
        return data


@asynccontextmanager
async def _made_folder(settings: "Settings", database: "Database") -> AsyncGenerator[None]:
    """The place of an embedded database; where it was made here and nothing came of it, gone."""
    from toolgate.data_folder import BESIDE, embedded_file, make_private

    file = embedded_file(database)
    new = file is not None and not file.exists()
    made = not settings.data.exists()
    make_private(settings.data, database)
    try:
        yield
    except BaseException:
        await database.close()
        if new and file is not None:
            for end in BESIDE:
                file.with_name(file.name + end).unlink(missing_ok=True)
        if made:
            with suppress(OSError):  # one that is not empty stays
                settings.data.rmdir()
        raise


async def _complete_index(settings: "Settings", database: "Database") -> None:
    from toolgate.document_stores import DocumentStores

    async def show(done: int, total: int) -> None:
        bar(done, total)

    with progress_bar("Indexing documents") as bar:
        await DocumentStores(settings, database).complete_index(show)
