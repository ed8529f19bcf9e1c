"""`toolgate appdata`: propose a file of collections."""

import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import environment
from toolgate.cli.options import ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import say, success
from toolgate.cli.problems import ExitCode, Stop

if TYPE_CHECKING:
    from toolgate.sections import Settings

Limit = Annotated[
    int,
    typer.Option(metavar="N", min=1, max=1000, help="Documents to look at in each collection."),
]
OutFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="OUT", help="File to create; default: standard output."),
]

PATIENCE = 2.0
"""Seconds after which a person wants to know how far it is."""


def group() -> typer.Typer:
    """The command group."""
    return command_group("Serve your own collections.", discover=discover)


def discover(
    ctx: typer.Context,
    *,
    limit: Limit = 20,
    file: OutFile = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Propose a file for the setting appdata.collections from the documents in the store.

    Types are those of the first documents of each collection; no values are copied. Nothing may be
    written until the file says so.
    """
    if file is not None and file.exists():
        raise Stop(f"{file} is there already. Name another with --file, or move it away.")
    settings = command_settings(ctx, config, data)
    with _progress() as progress:
        text = environment.run_async(lambda: _propose(settings, limit, progress))
    if not text:
        raise Stop("There are no documents, so there is nothing to propose.", ExitCode.FAILED)
    if file is None:
        return say(text.rstrip("\n"))
    with file.open("x", encoding="utf-8", newline="\n") as out:
        out.write(text)
    return say(f"{success('Done:')} {file} is written. Edit it, and set appdata.collections to it.")


async def _propose(settings: "Settings", limit: int, progress: Callable[[int, int], None]) -> str:
    from toolgate.document_stores import firestore_of
    from toolgate.packs.appdata.discovery import propose
    from toolgate.packs.appdata.pack import APPDATA
    from toolgate.packs.appdata.settings import AppDataSettings
    from toolgate.storage_sections import DatabaseSettings

    # The file that the settings name may be the one that is to be made.
    changed: dict[str, object] = {APPDATA.name: AppDataSettings()}
    in_firestore = firestore_of(settings, APPDATA.name) is not None
    with ExitStack() as stack:
        if in_firestore:  # toolgate's own data is not needed, and may not be there yet
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            changed |= {"data": Path(folder), "database": DatabaseSettings(url=None)}
        trial = settings.model_copy(update=changed)
        async with environment.world(trial, APPDATA.name, existing=not in_firestore) as world:
            return await propose(world.documents, limit, progress)


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """Takes how much is done of how much; on a terminal a bar shows it once it takes long."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    # Imported here: only a person who waits needs a bar.
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("Collections")
    shown_from = time.monotonic() + PATIENCE

    def progress(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not bar.live.is_started and time.monotonic() >= shown_from:
            bar.start()

    try:
        yield progress
    finally:
        bar.stop()
