"""What tools ask about numbers, and how they are counted in a store that keeps no log."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from toolgate.packs.backend.stats.counting import COLLECTIONS, Counted, Numbers, count, totals
from toolgate.ports.documents import DOCUMENT_ID, Cursor, DocumentStore, Order, Query

PAGE = 500


class Counters(Protocol):
    """How many there are."""

    async def now(self) -> Mapping[Counted, int] | None:
        """The numbers at this moment; None where they are known only after counting."""
        ...

    async def recount(self, *, keep: bool) -> Mapping[Counted, int]:
        """Count every document; with `keep`, go on from these numbers."""
        ...

    async def follow(self) -> None:
        """Keep the numbers up to date, until cancelled."""
        ...


class CountedDocuments:
    """Counts documents where they are, one page after the other: in Firestore."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def now(self) -> None:
        """Nobody knows without counting."""

    async def recount(self, *, keep: bool) -> Mapping[Counted, int]:
        """Read every document of the collections; nothing is kept here."""
        del keep
        numbers: Numbers = Numbers()
        for collection in COLLECTIONS:
            query = Query(collection, order=[Order(DOCUMENT_ID)], limit=PAGE)
            while page := await self._store.query(query):
                for one in page:
                    count(numbers, f"{collection}/{one.id}", one.fields, 1)
                query = replace(query, start=Cursor((page[-1].id,), inclusive=False))
        return totals(numbers, int(time.time()))

    async def follow(self) -> None:
        """There is nothing to follow."""
