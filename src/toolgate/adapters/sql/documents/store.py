"""The documents of one namespace, in the gate's database."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.exc import DBAPIError

from toolgate.adapters.sql.documents.index import CollectionIndex, is_large, unindexed_paths
from toolgate.adapters.sql.documents.reading import ask_collections, ask_fields
from toolgate.adapters.sql.documents.rows import PLACE, VERSIONED, rows_of_write
from toolgate.adapters.sql.documents.search import search
from toolgate.adapters.sql.documents.transaction import SqlDocumentTransaction
from toolgate.adapters.sql.documents.writing import Writing
from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.row_writes import Rows, RowWrite
from toolgate.db.tables import documents
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentTransaction,
    Fields,
    Query,
    Reference,
    StoredDocument,
    StoreUnavailable,
    Update,
    Write,
    as_conflict,
)

T = TypeVar("T")
AWAY = "The document store does not answer. Try again later."
ONE = PreparedStatement(
    select(documents.c.fields).where(
        documents.c.namespace == bindparam("namespace"),
        documents.c.collection == bindparam("collection"),
        documents.c.id == bindparam("id"),
    )
)


class SqlDocuments:
    """Writes join the gate's transaction.

    `unindexed` names fields that no query uses: `COLLECTION.FIELD`, or `*.FIELD`.
    """

    joins_transaction = True

    def __init__(self, database: Database, namespace: str, unindexed: Sequence[str] = ()) -> None:
        self.database = database
        self._namespace = namespace
        self._unindexed = unindexed

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        key = {"namespace": self._namespace, "collection": collection, "id": document_id}
        try:
            row = await self.database.look_up(ONE, key, of_data=True)
        except (DBAPIError, OSError) as problem:
            raise StoreUnavailable(AWAY) from problem
        return None if row is None else row.fields

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None."""
        with _as_store_errors():
            found = await self.database.ask(lambda: ask_fields(self._namespace, references))
        return [found.get(one) for one in references]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass."""
        index = self.index_of(query.collection)
        with _as_store_errors():
            return await self.database.ask(lambda: search(self._namespace, query, index))

    async def collections(self, parent: Reference | None = None) -> Sequence[str]:
        """Return the names of the collections of the store, or of one document."""
        above = "/".join(parent) + "/" if parent else ""
        with _as_store_errors():
            return await self.database.ask(lambda: ask_collections(self._namespace, above))

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these in the gate's transaction."""
        for one in writes:
            self.index_of(one.collection).check_given(one)

        def store(connection: Connection) -> None:
            with as_conflict(conflict):
                Writing(tx, connection, self._namespace, self.index_of).store(writes)

        if conflict is not None:
            alone = is_large([_given(one) for one in writes])
            rows = None if alone else await self._rows(tx, writes, conflict)
            tx.defer(store, rows, alone=alone)
            return
        with _as_store_errors():
            await tx.run(store)

    async def _rows(
        self, tx: Transaction, writes: Sequence[Write], conflict: Exception
    ) -> Rows | None:
        """What a single write does to rows, where the database takes it so."""
        if self.database.row_store is None or tx.diff is not None or len(writes) != 1:
            return None
        write = writes[0]
        place = (self._namespace, write.collection, write.document_id)
        read = None
        if not isinstance(write, Create):
            with _as_store_errors():
                key = {str(name): value for name, value in zip(PLACE, place, strict=True)}
                read = await self.database.look_up(VERSIONED, key, of_data=True)
            if read is not None and is_large(read.fields):
                return None  # its entries are made in a thread

        def rows() -> Sequence[RowWrite]:
            with as_conflict(conflict):
                return rows_of_write(write, place, read, self.index_of(write.collection), tx.call)

        return rows

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work on documents that nobody else changes meanwhile."""
        transaction = SqlDocumentTransaction(tx, self._namespace, self.index_of)
        with _as_store_errors():
            return await transaction.complete(work)

    async def check(self) -> None:
        """Raise unless the database answers."""
        with _as_store_errors():
            await self.database.check()

    async def close(self) -> None:
        """The database is closed by its owner."""

    def index_of(self, collection: str) -> CollectionIndex:
        """How the documents of a collection are indexed."""
        return CollectionIndex(
            self._namespace, collection, unindexed_paths(self._unindexed, collection)
        )


def _given(write: Write) -> Fields:
    return write.changes if isinstance(write, Update) else write.fields


@contextmanager
def _as_store_errors() -> Generator[None, None, None]:
    try:
        yield
    except (DBAPIError, OSError) as problem:
        raise StoreUnavailable(AWAY) from problem
