"""Work that reads documents, decides and writes, as one.

What was read is locked, so it does not change. What was not there cannot be locked: where somebody
makes such a document first, the work is begun anew. Works that query one collection wait for each
other, so none finds what another is about to make.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import TypeVar

from sqlalchemy import Connection, NestedTransaction, text
from sqlalchemy.exc import DBAPIError

from toolgate.adapters.sql.documents.reading import fields_of
from toolgate.adapters.sql.documents.search import search
from toolgate.adapters.sql.documents.writing import AlreadyThere, IndexOf, Writing
from toolgate.db.questions import answer
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    DocumentTransaction,
    Fields,
    Query,
    Reference,
    StoreContended,
    StoredDocument,
    Write,
)
from toolgate.ports.filters import matches

T = TypeVar("T")
ATTEMPTS = 10
LOCK = text("SELECT pg_advisory_xact_lock(:number)")
DEADLOCK = "40P01"
CONTENDED = "Others keep changing the same documents. Try again later."


class SqlDocumentTransaction:
    """Documents of a namespace, as one transaction of the gate sees them."""

    def __init__(self, tx: Transaction, namespace: str, index_of: IndexOf) -> None:
        self._tx = tx
        self._namespace = namespace
        self._index_of = index_of
        self._absent: set[Reference] = set()
        self._writes: list[Write] = []

    async def complete(self, work: Callable[[DocumentTransaction], Awaitable[T]]) -> T:
        """Do the work, and what it writes; again, where others were quicker."""
        for _ in range(ATTEMPTS):
            self._absent.clear()
            self._writes.clear()
            savepoint = await self._tx.run(lambda connection: connection.begin_nested())
            try:
                return await self._attempt(work, savepoint)
            except (AlreadyThere, DBAPIError) as problem:
                if isinstance(problem, DBAPIError) and not _is_deadlock(problem):
                    raise
        raise StoreContended(CONTENDED)

    async def _attempt(
        self, work: Callable[[DocumentTransaction], Awaitable[T]], savepoint: NestedTransaction
    ) -> T:
        try:
            result = await work(self)
            await self._tx.run(self._store)
        except Exception:
            await self._tx.run(lambda _: _roll_back(savepoint))
            raise
        await self._tx.run(lambda _: savepoint.commit())
        return result

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        return (await self.get_many([(collection, document_id)]))[0]

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None."""
        found = await self._tx.run(lambda connection: self._locked(connection, references))
        self._absent.update(one for one in references if one not in found)
        return [found.get(one) for one in references]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass."""
        return await self._tx.run(lambda connection: self._query(connection, query))

    def write(self, *writes: Write) -> None:
        """Store these, in order, when the work is done."""
        for one in writes:
            self._index_of(one.collection).check_given(one)
        self._writes += writes

    def _query(self, connection: Connection, query: Query) -> list[StoredDocument]:
        index = self._index_of(query.collection)
        self._wait_for_others(connection, query.collection)
        found = answer(connection, search(self._namespace, query, index))
        locked = self._locked(connection, [(query.collection, one.id) for one in found])
        # What was changed between the two looks, and no longer passes, is left out.
        again = [(one.id, locked.get((query.collection, one.id))) for one in found]
        return [
            StoredDocument(id, fields)
            for id, fields in again
            if fields is not None and matches(fields, query.filters)
        ]

    def _locked(
        self, connection: Connection, references: Sequence[Reference]
    ) -> dict[Reference, Fields]:
        return fields_of(connection, self._namespace, references, for_update=True)

    def _wait_for_others(self, connection: Connection, collection: str) -> None:
        """SQLite has one writer at a time."""
        if connection.dialect.name == "postgresql":
            named = blake2b(f"{self._namespace}\0{collection}".encode(), digest_size=8)
            number = int.from_bytes(named.digest(), signed=True)
            connection.execute(LOCK, {"number": number})

    def _store(self, connection: Connection) -> None:
        writing = Writing(self._tx, connection, self._namespace, self._index_of)
        writing.store(self._writes, self._absent)


def _roll_back(savepoint: NestedTransaction) -> None:
    if savepoint.is_active:
        savepoint.rollback()


def _is_deadlock(problem: DBAPIError) -> bool:
    return getattr(problem.orig, "sqlstate", "") == DEADLOCK
