"""What a query returns of the candidates that the index gives.

`ports.filters` and `ports.ordering` have the last word on each, so both databases answer alike,
also where the index has only the beginning of a value.
"""

from typing import Protocol

from toolgate.adapters.sql.documents.index import is_cut
from toolgate.adapters.sql.documents.plans import Plan
from toolgate.ports.documents import DOCUMENT_ID, Query, StoredDocument
from toolgate.ports.filters import matches
from toolgate.ports.ordering import (
    Placed,
    is_between_cursors,
    is_past_end,
    position,
    selected,
    sort_by_order,
)

SPARE = 500
"""So many more than a query wants are kept before they are sorted and cut."""


class Results(Protocol):
    """Takes candidates one by one."""

    def add(self, key: bytes, document: StoredDocument) -> bool:
        """Look at a candidate; whether none after it can be among the results."""
        ...

    def found(self) -> list[StoredDocument]:
        """The results, in the query's order."""
        ...


class OrderedResults:
    """The first that pass, of candidates in the order of the query's first field.

    Where further fields decide among those with the same key, all of these are taken.
    """

    def __init__(self, query: Query, plan: Plan) -> None:
        self._query = query
        self._plan = plan
        self._simple = is_simple(plan)
        self._placed: list[Placed] = []
        self._last_key = b""

    def add(self, key: bytes, document: StoredDocument) -> bool:
        """Look at a candidate; whether none after it can be among the results."""
        query, order = self._query, self._plan.order
        place = position(document, order)
        # An entry may be left of an earlier state, if the document was changed past this store.
        if place is None or not place[0].startswith(key):
            return False
        if is_past_end(place, query, order) and not is_cut(key):
            return True
        if not matches(document.fields, query.filters):
            return False
        return is_between_cursors(place, query, order) and self._keep(key, place, document)

    def _keep(self, key: bytes, place: list[bytes], document: StoredDocument) -> bool:
        limit = self._query.limit
        if limit is not None and len(self._placed) >= limit and key != self._last_key:
            return True
        self._placed.append((place, document))
        self._last_key = key
        if self._simple and len(self._placed) == limit and not is_cut(key):
            return True
        if limit and len(self._placed) > limit + SPARE:
            self._placed = sort_by_order(self._placed, self._plan.order)[:limit]
        return False

    def found(self) -> list[StoredDocument]:
        """The results, in the query's order."""
        placed = sort_by_order(self._placed, self._plan.order)
        return [one for _, one in placed[: self._query.limit]]


class UnorderedResults:
    """The first in the query's order, of candidates in any; never many more at once."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._kept: list[StoredDocument] = []

    def add(self, key: bytes, document: StoredDocument) -> bool:
        """Look at a candidate; the last of all may be the first of the results."""
        if matches(document.fields, self._query.filters):
            self._kept.append(document)
        if self._query.limit and len(self._kept) > self._query.limit + SPARE:
            self._kept = selected(self._kept, self._query)
        return False

    def found(self) -> list[StoredDocument]:
        """The results, in the query's order."""
        return selected(self._kept, self._query)


def is_simple(plan: Plan) -> bool:
    """Whether the index has the whole order: by id, or by one field and id in one direction."""
    one_direction = len({one.descending for one in plan.order}) == 1
    return plan.order[-1].field == DOCUMENT_ID and len(plan.order) <= 2 and one_direction
