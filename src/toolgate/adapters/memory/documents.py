"""Documents in a dictionary."""

import uuid
from collections.abc import Sequence
from copy import deepcopy
from itertools import islice

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentExists, Fields, Filter, StoredDocument
from toolgate.ports.filters import matches


class MemoryDocuments:
    """Loses everything at the end of the process."""

    joins_transaction = False

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, Fields]] = {}

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        return deepcopy(self._collections.get(collection, {}).get(document_id))

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        """Return at most `limit` documents that pass, in the order of creation."""
        documents = self._collections.get(collection, {})
        passing = (
            StoredDocument(id, fields)
            for id, fields in documents.items()
            if matches(fields, filters)
        )
        return [StoredDocument(one.id, deepcopy(one.fields)) for one in islice(passing, limit)]

    async def collections(self) -> Sequence[str]:
        """Return the names of the collections that are not nested."""
        return sorted(name for name, held in self._collections.items() if held and "/" not in name)

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        """Store a new document and return its id."""
        documents = self._collections.setdefault(collection, {})
        new_id = document_id or uuid.uuid4().hex
        if new_id in documents:
            raise DocumentExists(new_id)
        documents[new_id] = deepcopy(fields)
        return new_id

    async def check(self) -> None:
        """Memory always answers."""

    async def close(self) -> None:
        """Nothing to give back."""
