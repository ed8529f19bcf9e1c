"""A document store in which the records of users lie beside the documents of another pack."""

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Forbidden
from toolgate.ports.documents import DocumentStore, Fields
from toolgate.ports.users import ROLES, USERS

REFUSED = (
    f"The field {ROLES} of a document in {USERS} decides who is an admin, so this tool cannot "
    "write it. Leave it out, or keep the documents of this pack in a database of their own "
    "(setting documents.PACK)."
)


class SharedDocuments:
    """The same documents for a pack that must not say who is an admin."""

    def __init__(self, store: DocumentStore) -> None:
        self.joins_transaction = store.joins_transaction
        self.get = store.get
        self.query = store.query
        self.collections = store.collections
        self.check = store.check
        self.close = store.close
        self._create = store.create

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        """Store a new document, unless it would give a user rights."""
        if collection == USERS and ROLES in fields:
            raise Forbidden(REFUSED, rule="users-roles")
        return await self._create(tx, collection, fields, document_id)
