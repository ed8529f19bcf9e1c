"""A document store in which the records of users lie beside the documents of another pack."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Forbidden
from toolgate.ports.documents import (
    Delete,
    DocumentStore,
    DocumentTransaction,
    Json,
    Update,
    Write,
)
from toolgate.ports.private_keys import API, FIELD, PRIVATE_KEY
from toolgate.ports.users import ROLES, USERS, is_of_users, secret_out_of_place

T = TypeVar("T")
REFUSED = (
    f"The field {ROLES} of a document in {USERS} decides who is an admin, so this tool cannot "
    "write it. Leave it out, or keep the documents of this pack in a database of their own "
    "(setting documents.PACK)."
)

NO_KEYS = (
    f"The field {FIELD} of a document in {USERS} is a credential of that user, so this tool cannot "
    "write it. Leave it out."
)


class SharedDocuments:
    """The same documents for a pack that must not say who is an admin.

    It can take a right away with the whole document (`Set` or `Delete`), but give none.
    """

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self.joins_transaction = store.joins_transaction
        self.get = store.get
        self.get_many = store.get_many
        self.query = store.query
        self.collections = store.collections
        self.check = store.check
        self.close = store.close

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these, unless one would give a user rights."""
        _check(writes)
        await self._store.write(tx, *writes, conflict=conflict)

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work that gives no user rights."""
        return await self._store.transact(tx, lambda shared: work(_SharedTransaction(shared)))


class _SharedTransaction:
    def __init__(self, transaction: DocumentTransaction) -> None:
        self._transaction = transaction
        self.get = transaction.get
        self.get_many = transaction.get_many
        self.query = transaction.query

    def write(self, *writes: Write) -> None:
        """Store these when the work is done, unless one would give a user rights."""
        _check(writes)
        self._transaction.write(*writes)


def _check(writes: tuple[Write, ...]) -> None:
    for one in writes:
        if isinstance(one, Delete) or not is_of_users(one.collection):
            continue
        fields = one.changes if isinstance(one, Update) else one.fields
        if one.collection == USERS and any(path.split(".")[0] == ROLES for path in fields):
            raise Forbidden(REFUSED, rule="users-roles")
        if secret_out_of_place(fields) or any(_gives_key(*pair) for pair in fields.items()):
            raise Forbidden(NO_KEYS, rule="users-private-keys")


def _gives_key(path: str, value: Json) -> bool:
    return path == API and isinstance(value, dict) and PRIVATE_KEY in value
