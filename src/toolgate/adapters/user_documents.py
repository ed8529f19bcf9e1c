"""A document store with the records of users, of which nobody learns the private keys.

Reads leave them out, searches that would tell them are refused, and of one that is written only the
hash is stored: so they are in no change log either.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Forbidden, InvalidArguments, Problem
from toolgate.ports.documents import (
    Delete,
    DocumentReader,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Json,
    Query,
    Reference,
    StoredDocument,
    Update,
    Write,
)
from toolgate.ports.private_keys import (
    API,
    FIELD,
    PRIVATE_KEY,
    RULE,
    may_be_private_key,
    stored_form,
)
from toolgate.ports.transforms import DeleteField
from toolgate.ports.users import (
    USERS,
    holds_secret,
    is_of_users,
    secret_out_of_place,
    without_secrets,
)

T = TypeVar("T")
NOT_SEARCHED = f"{FIELD} of {USERS} is a secret: nothing can be searched or ordered by it."
BAD_KEY = f"{FIELD} must be {RULE}; or null, so that the user has none"
OUT_OF_PLACE = (
    f"{FIELD} must be the field {PRIVATE_KEY} of the map {API}, "
    f'{{"{API}": {{"{PRIVATE_KEY}": KEY}}}}: not a name with a dot in it, nor in a list'
)


class _Reader:
    """Reads without private keys."""

    def __init__(self, reader: DocumentReader) -> None:
        self._reader = reader

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        fields = await self._reader.get(collection, document_id)
        return without_secrets(fields) if fields and is_of_users(collection) else fields

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None."""
        found = await self._reader.get_many(references)
        return [
            without_secrets(fields) if fields and is_of_users(collection) else fields
            for (collection, _), fields in zip(references, found, strict=True)
        ]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass."""
        if not is_of_users(query.collection):
            return await self._reader.query(query)
        if any(holds_secret(one.field) for one in (*query.filters, *query.order)):
            raise Forbidden(NOT_SEARCHED, rule="users-private-keys")
        found = await self._reader.query(query)
        return [replace(one, fields=without_secrets(one.fields)) for one in found]


class UserDocuments(_Reader):
    """The documents of the pack that keeps the records of users."""

    def __init__(self, store: DocumentStore) -> None:
        super().__init__(store)
        self._store = store
        self.joins_transaction = store.joins_transaction
        self.collections = store.collections
        self.check = store.check
        self.close = store.close

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these, of a private key its hash."""
        await self._store.write(tx, *map(_hashed, writes), conflict=conflict)

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work that sees no private keys."""
        return await self._store.transact(tx, lambda within: work(_UserTransaction(within)))


class _UserTransaction(_Reader):
    def __init__(self, transaction: DocumentTransaction) -> None:
        super().__init__(transaction)
        self._transaction = transaction

    def write(self, *writes: Write) -> None:
        """Store these when the work is done."""
        self._transaction.write(*map(_hashed, writes))


def _hashed(write: Write) -> Write:
    if isinstance(write, Delete) or not is_of_users(write.collection):
        return write
    if isinstance(write, Update):
        changes = {path: _changed(path, value) for path, value in write.changes.items()}
        return replace(write, changes=changes)
    _check_places(write.fields)
    if API not in write.fields:
        return write
    return replace(write, fields={**write.fields, API: _api(write.fields[API])})


def _changed(path: str, value: Json) -> Json:
    if path == API:
        _check_places({API: value})
        return _api(value)
    if path == FIELD:
        return _kept(value)
    if path.startswith(f"{FIELD}."):
        raise _bad_key()
    return value


def _check_places(fields: Fields) -> None:
    if secret_out_of_place(fields):
        raise InvalidArguments([Problem(FIELD, "format", OUT_OF_PLACE)])


def _api(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    fields = cast(Fields, value)
    key = {PRIVATE_KEY: _kept(fields[PRIVATE_KEY])} if PRIVATE_KEY in fields else {}
    return {**fields, **key}


def _kept(value: Json) -> Json:
    """What is stored of a key that somebody writes."""
    if value is None or isinstance(value, DeleteField):
        return value
    if not isinstance(value, str) or not may_be_private_key(value):
        raise _bad_key()
    return stored_form(value)


def _bad_key() -> InvalidArguments:
    return InvalidArguments([Problem(FIELD, "format", BAD_KEY)])
