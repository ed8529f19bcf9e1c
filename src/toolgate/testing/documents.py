"""Documents in a dictionary, for tests that need a store which is not the gate's database."""

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import TypeVar

import anyio

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    DocumentTransaction,
    Fields,
    Query,
    Reference,
    StoredDocument,
    Write,
    as_conflict,
)
from toolgate.ports.ordering import selected
from toolgate.ports.transforms import fields_after, now

T = TypeVar("T")


class MemoryDocuments:
    """Loses everything at the end of the process."""

    joins_transaction = False

    def __init__(self) -> None:
        self._documents: dict[Reference, Fields] = {}
        self._writing = anyio.Lock()

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        return deepcopy(self._documents.get((collection, document_id)))

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None."""
        return [await self.get(*one) for one in references]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass."""
        documents = [
            StoredDocument(id, fields)
            for (collection, id), fields in self._documents.items()
            if collection == query.collection
        ]
        return deepcopy(selected(documents, query))

    async def collections(self, parent: Reference | None = None) -> Sequence[str]:
        """Return the names of the collections of the store, or of one document."""
        above = "/".join(parent) + "/" if parent else ""
        below = {name.removeprefix(above) for name, _ in self._documents if name.startswith(above)}
        return sorted(name for name in below if "/" not in name)

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these at once, whatever becomes of the transaction."""
        async with self._writing:
            with as_conflict(conflict):
                self._store(writes)

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work while nobody else writes."""
        async with self._writing:
            transaction = _Transaction(self)
            result = await work(transaction)
            self._store(transaction.writes)
            return result

    async def check(self) -> None:
        """Memory always answers."""

    async def close(self) -> None:
        """Nothing to give back."""

    def _store(self, writes: Sequence[Write]) -> None:
        documents, moment = dict(self._documents), now()
        for one in writes:
            reference = (one.collection, one.document_id)
            after = fields_after(one, documents.pop(reference, None), moment)
            if after is not None:
                documents[reference] = deepcopy(after)
        self._documents = documents


class _Transaction:
    def __init__(self, store: MemoryDocuments) -> None:
        self.get = store.get
        self.get_many = store.get_many
        self.query = store.query
        self.writes: list[Write] = []

    def write(self, *writes: Write) -> None:
        self.writes += writes
