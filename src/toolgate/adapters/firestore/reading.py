"""Reading documents, in a transaction or not."""

from collections.abc import Sequence

from toolgate.adapters.firestore.client import Connection
from toolgate.adapters.firestore.errors import as_store_errors
from toolgate.adapters.firestore.messages import requests
from toolgate.adapters.firestore.names import collection_name, document_name
from toolgate.adapters.firestore.queries import passes_nothing, query_message
from toolgate.adapters.firestore.values import fields_of
from toolgate.ports.documents import Fields, Query, Reference, StoredDocument


class FirestoreReader:
    """Reads what a transaction sees, or what is there now."""

    def __init__(self, connection: Connection, transaction: bytes | None = None) -> None:
        self._connection = connection
        self._transaction = transaction

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        [found] = await self.get_many([(collection, document_id)])
        return found

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None, asked for in one request."""
        if not references:
            return []
        with as_store_errors():
            names = [document_name(self._connection.root, *one) for one in references]
            request = requests.BatchGetDocumentsRequest(
                database=self._connection.database,
                documents=list(dict.fromkeys(names)),
                transaction=self._transaction,
            )
            responses = await self._connection.stream("batch_get_documents", request)
            found = {one.found.name: fields_of(one.found) for one in responses}
        return [found.get(name) for name in names]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass every filter, in the query's order."""
        if query.limit == 0 or any(passes_nothing(one) for one in query.filters):
            return []
        with as_store_errors():
            root = self._connection.root
            parent, collection_id = collection_name(root, query.collection)
            request = requests.RunQueryRequest(
                parent=parent,
                structured_query=query_message(query, collection_id, root),
                transaction=self._transaction,
            )
            responses = await self._connection.stream("run_query", request)
        return [
            StoredDocument(one.document.name.rpartition("/")[2], fields_of(one.document))
            for one in responses
            if one.HasField("document")
        ]
