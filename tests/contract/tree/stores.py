"""Every tree store there is, opened for a test with an empty tree."""

import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.databases import STARTS_A_SERVER
from tests.patience import PATIENT
from tests.rtdb.wire_server import running_rtdb

from toolgate.adapters.rtdb import RealtimeDatabase
from toolgate.adapters.sql.tree import SqlTree
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.db.transactions import Transaction
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import Json
from toolgate.ports.tree import (
    Push,
    Remove,
    SetValue,
    TreeQuery,
    TreeStore,
    TreeWrite,
    UpdateChildren,
)
from toolgate.testing.tree import MemoryTree

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=STARTS_A_SERVER), "rtdb-wire"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A store, and its transactions; one that joins none gets transactions that never begin."""

    store: TreeStore
    transaction: Callable[[], Transaction]

    async def write(self, *writes: TreeWrite) -> None:
        """Write in a transaction of its own."""
        async with self.transaction() as tx:
            await self.store.write(tx, *writes)

    async def set(self, path: str, value: Json) -> None:
        """Set one value."""
        await self.write(SetValue(path, value))

    async def update(self, path: str, **changes: Json) -> None:
        """Update the children of a path."""
        await self.write(UpdateChildren(path, changes))

    async def push(self, path: str, value: Json) -> str:
        """Add a child and return its key."""
        pushed = Push(path, value)
        await self.write(pushed)
        return pushed.key

    async def remove(self, path: str) -> None:
        """Remove what is at a path."""
        await self.write(Remove(path))

    async def get(self, path: str = "", *, shallow: bool = False) -> Json:
        """What is at a path."""
        return await self.store.get(path, shallow=shallow)

    async def keys(self, path: str = "", **query: Json) -> list[str]:
        """The keys of the children that pass, in order."""
        return list(await self.store.get(path, TreeQuery(**query)))

    async def transact(self, path: str, work: Callable[[Json], Json]) -> Json:
        """Compare and set, in a transaction of its own."""
        async with self.transaction() as tx:
            return await self.store.transact(tx, path, work)


@asynccontextmanager
async def opened_tree(
    kind: str, folder: Path, server: Callable[[str], str]
) -> AsyncGenerator[Tree]:
    """A store of one kind with nothing in it; `server` gives the address of a fixture's."""
    match kind:
        case "sqlite":
            async with opened_sql(f"sqlite:///{folder / 'tree.db'}") as tree:
                yield tree
        case "postgres":
            async with opened_sql(server("postgres_server")) as tree:
                yield tree
        case "rtdb-wire":
            async with Outbound() as outbound:
                name = f"tests-{uuid.uuid4().hex}"
                store = RealtimeDatabase(
                    outbound, server("rtdb_server"), namespace=name, timeout_seconds=PATIENT
                )
                yield Tree(store, Database("sqlite://").transaction)
        case _:
            yield Tree(MemoryTree(), Database("sqlite://").transaction)


@asynccontextmanager
async def opened_sql(url: str) -> AsyncGenerator[Tree]:
    """A tree of a namespace that nobody else uses."""
    database = Database(url)
    await database.write(metadata.create_all)
    yield Tree(SqlTree(database, f"tests-{uuid.uuid4().hex}"), database.transaction)
    await database.close()


@pytest.fixture(scope="session")
def rtdb_server() -> Iterator[str]:
    """The address of a Realtime Database that lives as long as the tests."""
    with running_rtdb() as server:
        yield server.url
