"""The order of a query's results: Firestore's, on every adapter.

An order that is not given follows from the filters: by the fields of range filters first, then by
id. One that is given is completed in the same way, in the direction of its last field.
"""

from collections.abc import Iterable, Sequence

from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    Operator,
    Order,
    Query,
    StoredDocument,
)
from toolgate.ports.filters import MISSING, field_at, matches
from toolgate.ports.sort_keys import sort_key

RANGES = {
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
    Operator.NOT_EQUAL,
    Operator.NOT_IN,
}
"""Filters by which results are ordered where nothing else is said."""


def full_order(query: Query) -> list[Order]:
    """The whole order, which ends with the id."""
    order = list(query.order)
    descending = order[-1].descending if order else False
    ordered = {one.field for one in order}
    ranged = {one.field for one in query.filters if one.operator in RANGES} - ordered
    order += [Order(field, descending) for field in sorted(ranged)]
    if DOCUMENT_ID not in ordered:
        order.append(Order(DOCUMENT_ID, descending))
    return order


def position(document: StoredDocument, order: Sequence[Order]) -> list[bytes] | None:
    """A document's place, a key for each field of the order; None where it lacks one."""
    keys: list[bytes] = []
    for one in order:
        value = document.id if one.field == DOCUMENT_ID else field_at(document.fields, one.path)
        if value is MISSING:
            return None
        keys.append(sort_key(value))
    return keys


Placed = tuple[list[bytes], StoredDocument]
"""A document and its place."""


def selected(documents: Iterable[StoredDocument], query: Query) -> list[StoredDocument]:
    """What a query finds among documents."""
    order = full_order(query)
    placed = [
        (place, one)
        for one in documents
        if matches(one.fields, query.filters)
        and (place := position(one, order)) is not None
        and is_between_cursors(place, query, order)
    ]
    return [one for _, one in sort_by_order(placed, order)[: query.limit]]


def sort_by_order(placed: Iterable[Placed], order: Sequence[Order]) -> list[Placed]:
    """Documents in an order."""
    result = list(placed)
    # A stable sort for each field, the last first: bytes cannot be turned round.
    for number in reversed(range(len(order))):
        result.sort(key=lambda one: one[0][number], reverse=order[number].descending)
    return result


def is_between_cursors(place: Sequence[bytes], query: Query, order: Sequence[Order]) -> bool:
    """Whether a place is not before the start of a query and not after its end."""
    after_start = (
        query.start is None or _compare(place, query.start, order) > -query.start.inclusive
    )
    before_end = query.end is None or _compare(place, query.end, order) < query.end.inclusive
    return after_start and before_end


def is_past_end(place: Sequence[bytes], query: Query, order: Sequence[Order]) -> bool:
    """Whether a place, and all after it in the order of the first field, is past a query's end."""
    return query.end is not None and _compare(place[:1], query.end, order) > 0


def _compare(place: Sequence[bytes], cursor: Cursor, order: Sequence[Order]) -> int:
    for key, value, one in zip(place, cursor.values, order, strict=False):
        other = sort_key(value)
        if key != other:
            return -1 if (key < other) is not one.descending else 1
    return 0
