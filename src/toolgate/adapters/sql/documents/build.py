"""Making the index of documents that have none.

They are from before there was one, or a setting exempts other fields than it did.

In small steps, each a transaction of its own, so that a build which is stopped goes on later.
"""

from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import Connection, delete, func, insert, select, text, update

from toolgate.adapters.sql.documents.index import CollectionIndex, rows_of, unindexed_paths
from toolgate.adapters.sql.documents.statements_of_one import ADD_ENTRY
from toolgate.db.engine import Database
from toolgate.db.tables import document_index, document_index_state, documents

STEP = 500
"""Documents in one transaction."""
LOCK = 0x7001_6A81
Progress = Callable[[int, int], Awaitable[None]]
"""Told how many documents of how many are done."""


class IndexBuild:
    """The index of a whole database."""

    def __init__(self, database: Database, unindexed: Sequence[str] = ()) -> None:
        self._database = database
        self._unindexed = sorted(unindexed)

    async def complete(self, progress: Progress) -> int:
        """Build what is missing; how many documents got entries."""
        if await self.is_complete():
            return 0
        await self._database.write(self._begin)
        total = await self._database.read(_count_left)
        done = 0
        while step := await self._database.write(self._step):
            done += step
            await progress(done, max(done, total))
        return done

    async def is_complete(self) -> bool:
        """Whether every document has its entries."""
        return await self._database.read(self._is_complete, quick=True)

    async def documents(self) -> int:
        """How many documents there are."""
        every = select(func.count()).select_from(documents)
        return await self._database.read(lambda connection: connection.scalar(every)) or 0

    def _is_complete(self, connection: Connection) -> bool:
        state = connection.execute(select(document_index_state)).first()
        return state is not None and state.unindexed == self._unindexed and state.built_to is None

    def _begin(self, connection: Connection) -> None:
        """Note where the build begins: anew, unless one without the same fields was stopped."""
        _lock(connection)
        state = connection.execute(select(document_index_state)).first()
        if state is not None and state.unindexed == self._unindexed:
            return
        connection.execute(delete(document_index_state))
        connection.execute(delete(document_index))
        row = {"id": 1, "unindexed": self._unindexed, "built_to": 0}
        connection.execute(insert(document_index_state), [row])

    def _step(self, connection: Connection) -> int:
        _lock(connection)
        built_to = connection.scalar(select(document_index_state.c.built_to))
        if built_to is None:
            return 0
        following = select(documents).where(documents.c.seq > built_to).order_by(documents.c.seq)
        rows = connection.execute(following.limit(STEP)).all()
        entries = [
            entry
            for row in rows
            for entry in rows_of(
                self._index(row.namespace, row.collection).entries(row.fields), row.id
            )
        ]
        if entries:
            ADD_ENTRY.run(connection, entries)
        built_to = rows[-1].seq if len(rows) == STEP else None
        connection.execute(update(document_index_state).values(built_to=built_to))
        return len(rows)

    def _index(self, namespace: str, collection: str) -> CollectionIndex:
        return CollectionIndex(namespace, collection, unindexed_paths(self._unindexed, collection))


def _lock(connection: Connection) -> None:
    """One build at a time; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def _count_left(connection: Connection) -> int:
    left = documents.c.seq > select(document_index_state.c.built_to).scalar_subquery()
    return connection.scalar(select(func.count()).select_from(documents).where(left)) or 0
