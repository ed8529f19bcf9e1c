"""Opening what a command needs, and no more."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.db.engine import Database
    from toolgate.settings import Settings

T = TypeVar("T")


def wait_for(work: Callable[[], Awaitable[T]], *, often: bool = False) -> T:
    """Run asynchronous work to its end; with `often`, on the loop that is quicker at many calls."""
    # Imported here: `toolgate --help` needs no event loop.
    import anyio

    return anyio.run(work, backend_options={"use_uvloop": often and _has_uvloop()})


def _has_uvloop() -> bool:
    from importlib.util import find_spec

    return find_spec("uvloop") is not None  # there is none for Windows


@asynccontextmanager
async def database(settings: "Settings", *, existing: bool = False) -> "AsyncGenerator[Database]":
    """The database alone, at the newest schema; with `existing`, none is made."""
    from toolgate.db.engine import Database
    from toolgate.db.upgrades import upgrade_at_start

    opened = Database(settings.database_url)
    try:
        file = embedded_file(opened)
        if file and existing and not file.exists():
            raise Stop(f"There is no database at {file}. Name its folder with --data.")
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
        await upgrade_at_start(opened)
        yield opened
    finally:
        await opened.close()


def embedded_file(database: "Database") -> Path | None:
    """The file of an embedded database; None for a server or one in memory."""
    name = database.url.database
    return Path(name) if database.dialect == "sqlite" and name else None
