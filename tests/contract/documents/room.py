"""What a case is given, and how it becomes one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    Cursor,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Filter,
    Json,
    Operator,
    Order,
    Query,
    StoredDocument,
    Write,
    new_id,
)

Condition: TypeAlias = tuple[str, str, Json]


@dataclass(frozen=True, slots=True)
class Room:
    """A store, its transactions and an empty collection in it."""

    store: DocumentStore
    transaction: Callable[[], Transaction]
    collection: str

    async def write(self, *writes: Write) -> None:
        """Store these in a transaction of their own."""
        async with self.transaction() as tx:
            await self.store.write(tx, *writes)

    async def transact(self, work: Callable[[DocumentTransaction], Awaitable[Json]]) -> Json:
        """Do work in a transaction of its own."""
        async with self.transaction() as tx:
            return await self.store.transact(tx, work)

    async def add(
        self, document_id: str | None, fields: Fields, *, collection: str | None = None
    ) -> str:
        """Create a document in a transaction of its own."""
        new = Create(collection or self.collection, document_id or new_id(), fields)
        await self.write(new)
        return new.document_id

    async def add_each(self, field: str, values: dict[str, Json]) -> None:
        """Create one document for every value, named after its key, with that one field."""
        await self.write(*(Create(self.collection, id, {field: one}) for id, one in values.items()))

    async def get(self, document_id: str) -> Fields | None:
        """The document of that id."""
        return await self.store.get(self.collection, document_id)

    async def query(self, *conditions: Condition, limit: int = 1000) -> list[StoredDocument]:
        """The documents that pass, in the order of the store."""
        return list(await self.store.query(Query(self.collection, filters(conditions), (), limit)))

    async def ids(self, *conditions: Condition) -> str:
        """The ids of the documents that pass, sorted, with spaces between."""
        return " ".join(sorted(one.id for one in await self.query(*conditions)))

    async def places(
        self,
        *conditions: Condition,
        by: str = "",
        start: Cursor | None = None,
        end: Cursor | None = None,
        limit: int | None = None,
    ) -> str:
        """The ids of the documents that pass, in order; `by` is like `name -age`."""
        order = [Order(one.removeprefix("-"), one.startswith("-")) for one in by.split()]
        query = Query(self.collection, filters(conditions), order, limit, start, end)
        return " ".join(one.id for one in await self.store.query(query))


def filters(conditions: Sequence[Condition]) -> list[Filter]:
    """Conditions as a query takes them."""
    return [Filter(field, Operator(operator), value) for field, operator, value in conditions]


def at(*values: Json) -> Cursor:
    """From here, or up to here."""
    return Cursor(values, inclusive=True)


def beside(*values: Json) -> Cursor:
    """From after here, or up to before here."""
    return Cursor(values, inclusive=False)


Case: TypeAlias = Callable[[Room], Awaitable[None]]
CASES: list[Case] = []


def case(function: Case) -> Case:
    """Add a function to the cases."""
    CASES.append(function)
    return function
