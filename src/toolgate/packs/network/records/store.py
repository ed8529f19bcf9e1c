"""The records of the network: read by whoever shows them, changed only as checked wholes."""

from collections.abc import AsyncIterator, Callable
from typing import Literal

from toolgate.db.transactions import Transaction
from toolgate.packs.network.errors import store_errors
from toolgate.packs.network.records.checks import completed
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    Delete,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Order,
    Query,
    Set,
)
from toolgate.ports.transforms import now

Collection = Literal["agents", "tasks", "skills"]
Work = Callable[[Fields | None], Fields | None]
"""From a record to what becomes of it; None for no record. It may be called more than once."""
PAGE = 500


class Records:
    """Agents, tasks and skills, the very documents that `firebase.read` shows."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    async def get(self, collection: Collection, record_id: str) -> Fields | None:
        """One record, or None."""
        with store_errors("path"):
            return await self._documents.get(collection, record_id)

    async def every(self, collection: Collection) -> AsyncIterator[Fields]:
        """Each record in the order of ids, read page by page."""
        last: str | None = None
        while True:
            start = None if last is None else Cursor((last,), inclusive=False)
            page = Query(collection, order=[Order(DOCUMENT_ID)], limit=PAGE, start=start)
            with store_errors("path"):
                found = await self._documents.query(page)
            for one in found:
                yield one.fields
            if len(found) < PAGE:
                return
            last = found[-1].id

    async def change(
        self, tx: Transaction, collection: Collection, record_id: str, work: Work
    ) -> Fields | None:
        """Store what the work makes of a record, checked; nobody else changes it meanwhile.

        Raises `InvalidArguments` for what is no record, and `Conflict` where others change the
        same one again and again.
        """

        async def change_inside(inside: DocumentTransaction) -> Fields | None:
            after = work(await inside.get(collection, record_id))
            if after is None:
                inside.write(Delete(collection, record_id))
                return None
            record = completed(collection, record_id, after, now())
            inside.write(Set(collection, record_id, record))
            return record

        with store_errors():
            return await self._documents.transact(tx, change_inside)
