"""A tree in a table of the gate's database, one row for each scalar, in the namespace of its pack.

What is below a path is one range of the table's key (`paths`), so that a child is read and
written alike among ten and among millions. There is no index on values: a query by a value looks
at that one value of each child, and reads the whole of those that pass.
"""

import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import orjson
from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.sql.dml import ReturningDelete

from toolgate.adapters.sql.tree import reading
from toolgate.adapters.sql.tree.changes import StoredScalar, changes_between
from toolgate.adapters.sql.tree.locks import lock
from toolgate.adapters.sql.tree.paths import END, encoded
from toolgate.db.engine import Database
from toolgate.db.outages import code_of
from toolgate.db.tables import tree_nodes
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import Json, StoreContended, StoreUnavailable
from toolgate.ports.tree import Increment, ServerTime, SetValue, TreeQuery, TreeWrite
from toolgate.ports.tree_queries import check_query
from toolgate.ports.tree_rules import Node, Path, increased, json_of, leaves, path_of
from toolgate.ports.tree_writes import checked_changes

T = TypeVar("T")

AWAY = "The tree store does not answer. Try again later."
CONTENDED = "Others write to the same part of the tree. Try again."
DEADLOCK = "40P01"
AT_ONCE = 500
"""Paths named in one statement."""
PARTS_AT_ONCE = 50
"""Ranges named in one statement."""
IN_NAMESPACE = tree_nodes.c.namespace == bindparam("of")
SCALARS = select(tree_nodes.c.path, tree_nodes.c.value).where(
    IN_NAMESPACE, tree_nodes.c.path.in_(bindparam("paths", expanding=True))
)


class SqlTree:
    """The tree of one namespace. Writes join the gate's transaction."""

    joins_transaction = True

    def __init__(
        self, database: Database, namespace: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._namespace = namespace
        self._clock = clock

    async def get(
        self, path: str, query: TreeQuery | None = None, *, shallow: bool = False
    ) -> Json:
        """Return what is at a path, its keys, or those of its children that pass."""
        place = encoded(path_of(path))
        if query is not None:
            check_query(query, shallow=shallow)
            look = partial(reading.query, namespace=self._namespace, place=place, asked=query)
            return await self._read(look)
        if shallow:
            look = partial(reading.keys_at, namespace=self._namespace, place=place)
            return await self._read(look, quick=True)
        return await self._value(place)

    async def _value(self, place: bytes) -> Json:
        """What is at a path; what is much is put together in a thread, not on the event loop."""
        if self._database.dialect == "sqlite":
            few = partial(reading.small_node_at, namespace=self._namespace, place=place)
            complete, node = await self._read(few, quick=True)
            if complete:
                return json_of(node)
        look = partial(reading.node_at, namespace=self._namespace, place=place)
        return await self._read(lambda connection: json_of(look(connection)))

    async def _read(self, look: Callable[[Connection], T], *, quick: bool = False) -> T:
        async with _as_store_errors():
            return await self._database.read(look, quick=quick)

    async def write(self, tx: Transaction, *writes: TreeWrite) -> None:
        """Store these in the transaction."""
        changes = await checked_changes(writes)
        if not changes:
            return
        async with _as_store_errors():
            await tx.run(lambda connection: self._store(tx, connection, changes))

    async def transact(self, tx: Transaction, path: str, work: Callable[[Json], Json]) -> Json:
        """Nobody else can write there from the reading on, so the work is done once."""
        keys = path_of(path)
        place = encoded(keys)

        def read(connection: Connection) -> Json:
            lock(connection, self._namespace, [keys])
            return json_of(reading.node_at(connection, self._namespace, place))

        async with _as_store_errors():
            before = await tx.run(read)
        await self.write(tx, SetValue(path, work(before)))
        async with _as_store_errors():
            return await tx.run(read)

    async def check(self) -> None:
        """Raise unless the database answers."""
        async with _as_store_errors():
            await self._database.check()

    async def close(self) -> None:
        """The database is closed by its owner."""

    def _store(self, tx: Transaction, connection: Connection, changes: Mapping[Path, Node]) -> None:
        lock(connection, self._namespace, changes)
        values = self._values(connection, changes)
        # A child takes the place of a scalar above it; where nothing is left, none does.
        above = {
            encoded(path[:size])
            for path, node in changes.items()
            if node is not None
            for size in range(len(path))
        }
        places = [encoded(path) for path in changes]
        before: list[StoredScalar] = []
        for deletion in _deletions(self._namespace, sorted(above), places):
            before += [(bytes(path), value) for path, value in connection.execute(deletion)]
        after = [(encoded(path), orjson.dumps(value).decode()) for path, value in values.items()]
        if after:
            rows = [
                {"namespace": self._namespace, "path": path, "value": value}
                for path, value in after
            ]
            connection.execute(insert(tree_nodes), rows)
        tx.changed(connection, changes_between(self._namespace, places, before, after))

    def _values(self, connection: Connection, changes: Mapping[Path, Node]) -> dict[Path, Json]:
        """Every scalar to store, with server values worked out."""
        values = {path: leaf for top, node in changes.items() for path, leaf in leaves(node, top)}
        raised = [encoded(path) for path, leaf in values.items() if isinstance(leaf, Increment)]
        before: dict[bytes, Json] = {}
        for paths in _portions(raised):
            rows = connection.execute(SCALARS, {"of": self._namespace, "paths": paths})
            before |= {bytes(path): orjson.loads(value) for path, value in rows}
        now = int(self._clock() * 1000)
        for path, leaf in values.items():
            if isinstance(leaf, Increment):
                values[path] = increased(before.get(encoded(path)), leaf.by)
            elif isinstance(leaf, ServerTime):
                values[path] = now
        return values


def _deletions(
    namespace: str, scalars: list[bytes], places: list[bytes]
) -> Generator[ReturningDelete[bytes, str]]:
    """Statements that delete scalars, and all that is at and below places, and tell what it was."""
    # The namespace stands in each part: else SQLite looks at all rows of it.
    ours = tree_nodes.c.namespace == namespace
    parts = [and_(ours, tree_nodes.c.path.in_(some)) for some in _portions(scalars)]
    for place in places:
        parts.append(and_(ours, tree_nodes.c.path >= place, tree_nodes.c.path < place + END))
    for start in range(0, len(parts), PARTS_AT_ONCE):
        some = delete(tree_nodes).where(or_(*parts[start : start + PARTS_AT_ONCE]))
        yield some.returning(tree_nodes.c.path, tree_nodes.c.value)


def _portions(paths: list[bytes]) -> list[list[bytes]]:
    return [paths[start : start + AT_ONCE] for start in range(0, len(paths), AT_ONCE)]


@asynccontextmanager
async def _as_store_errors() -> AsyncGenerator[None, None]:
    try:
        yield
    except DBAPIError as problem:
        if code_of(problem) == DEADLOCK:
            raise StoreContended(CONTENDED) from problem
        raise StoreUnavailable(AWAY) from problem
    except (NoConnection, OSError) as problem:
        raise StoreUnavailable(AWAY) from problem
