"""Documents in a table of the gate's database, each in the namespace of its pack.

The database narrows the candidates where its JSON functions can; `ports.filters` has the last
word on each, so both databases answer alike.
"""

import secrets
import string
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection, Select, bindparam, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from toolgate.adapters.sql.prefilter import narrow
from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import documents
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    DocumentExists,
    Fields,
    Filter,
    StoredDocument,
    StoreUnavailable,
)
from toolgate.ports.filters import matches

LETTERS = string.ascii_letters + string.digits
ID_LENGTH = 20
PAGE = 500
AWAY = "The document store does not answer. Try again later."
ONE = PreparedStatement(
    select(documents.c.fields).where(
        documents.c.namespace == bindparam("namespace"),
        documents.c.collection == bindparam("collection"),
        documents.c.id == bindparam("id"),
    )
)


class SqlDocuments:
    """The documents of one namespace. Writes join the gate's transaction."""

    joins_transaction = True

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        key = {"namespace": self._namespace, "collection": collection, "id": document_id}
        try:
            row = await self._database.look_up(ONE, key)
        except (DBAPIError, OSError) as problem:
            raise StoreUnavailable(AWAY) from problem
        return None if row is None else row.fields

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        """Return at most `limit` documents that pass, in the order of creation."""
        candidates: Select[Any, Any, Any] = (
            select(documents.c.seq, documents.c.id, documents.c.fields)
            .where(documents.c.namespace == self._namespace, documents.c.collection == collection)
            .order_by(documents.c.seq)
        )
        for one in filters:
            candidates = narrow(candidates, one, self._database.dialect)
        async with _as_store_errors():
            return await self._database.read(
                lambda connection: _matching(connection, candidates, filters, limit)
            )

    async def collections(self) -> Sequence[str]:
        """Return the names of the collections that are not nested."""
        name = documents.c.collection
        ours = documents.c.namespace == self._namespace
        names = select(name).where(ours, name.not_like("%/%")).distinct()
        async with _as_store_errors():
            collections = await self._database.read(
                lambda connection: connection.scalars(names).all()
            )
        return sorted(collections)

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        """Store a new document and return its id."""
        new_id = document_id or "".join(secrets.choice(LETTERS) for _ in range(ID_LENGTH))
        where = {"namespace": self._namespace, "collection": collection}
        row = {**where, "id": new_id, "fields": fields}
        async with _as_store_errors():
            await tx.run(lambda connection: _insert(connection, row))
        return new_id

    async def check(self) -> None:
        """Raise unless the database answers."""
        async with _as_store_errors():
            await self._database.check()

    async def close(self) -> None:
        """The database is closed by its owner."""


def _matching(
    connection: Connection, candidates: Select[Any, Any, Any], filters: Sequence[Filter], limit: int
) -> list[StoredDocument]:
    """Check candidates page by page, so that a long collection is never in memory at once."""
    passing: list[StoredDocument] = []
    size = PAGE if filters else limit
    after = 0
    while True:
        page = candidates.where(documents.c.seq > after).limit(size)
        rows = connection.execute(page).all()
        for row in rows:
            if matches(row.fields, filters):
                passing.append(StoredDocument(row.id, row.fields))
                if len(passing) == limit:
                    return passing
        if len(rows) < size:
            return passing
        after = rows[-1].seq


def _insert(connection: Connection, row: Fields) -> None:
    try:
        with connection.begin_nested():
            connection.execute(insert(documents), [row])
    except IntegrityError as clash:
        raise DocumentExists(row["id"]) from clash


@asynccontextmanager
async def _as_store_errors() -> AsyncGenerator[None, None]:
    try:
        yield
    except (DBAPIError, OSError) as problem:
        raise StoreUnavailable(AWAY) from problem
