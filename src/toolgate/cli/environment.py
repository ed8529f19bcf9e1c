"""Opening what a command needs, and no more."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from toolgate.db.engine import Database
    from toolgate.settings import Settings

T = TypeVar("T")


def run_async(work: Callable[[], Awaitable[T]], *, often: bool = False) -> T:
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
    from toolgate.app import offers_of, schemas_of
    from toolgate.data_folder import make_ready
    from toolgate.db.engine import Database

    schemas = schemas_of(offers_of(settings))
    opened = Database(settings.database_url)
    try:
        await make_ready(opened, settings.data, schemas, existing=existing)
        yield opened
    finally:
        await opened.close()


def run_on_database(settings: "Settings", work: "Callable[[Database], Awaitable[T]]") -> T:
    """Run work that needs the database alone, which must be there."""

    async def run() -> T:
        async with database(settings, existing=True) as opened:
            return await work(opened)

    return run_async(run)


@asynccontextmanager
async def world(settings: "Settings", pack: str, *, existing: bool) -> AsyncGenerator[Any]:
    """The open ports of a pack, for a command of its own; with `existing`, no data is made."""
    from toolgate.app import opened

    async with opened(settings, existing=existing) as app:
        yield app.worlds[pack].world
