"""Which part of the index a query reads.

Results come in the order of the part that is read, wherever that is the query's own; then reading
ends with the last result. Everything else a query asks for is checked on the documents found.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from toolgate.adapters.sql.documents.index import CollectionIndex, index_key, is_cut
from toolgate.ports.documents import (
    DOCUMENT_ID,
    MAX_IN_VALUES,
    Cursor,
    Filter,
    Json,
    Operator,
    Order,
    Query,
)
from toolgate.ports.ordering import full_order
from toolgate.ports.sort_keys import NULL, type_bounds

FIRST, BEYOND = b"", b"\xff"
"""Before and after every key."""
EQUALITIES = {
    Operator.EQUAL,
    Operator.IN,
    Operator.ARRAY_CONTAINS,
    Operator.ARRAY_CONTAINS_ANY,
}


@dataclass(frozen=True, slots=True)
class Equality:
    """Documents with an entry of one of these keys under a field's number."""

    field: int
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Documents with an entry between two keys, the second excluded; in the order of keys."""

    field: int
    low: bytes
    high: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to read."""

    order: Sequence[Order]
    """The query's whole order."""
    range: Range | None
    """By which results can be read in their order; None where that is the order of ids, or where
    the index lacks the field."""
    equalities: Sequence[Equality]
    """Each of which can narrow what is read, or be read itself; none has more keys than an `in`
    of Firestore has values."""
    impossible: bool = False
    """No document can pass."""

    @property
    def descending(self) -> bool:
        """The direction of the order's first field."""
        return self.order[0].descending

    @property
    def by_id(self) -> bool:
        """Whether results are ordered by ids alone."""
        return self.order[0].field == DOCUMENT_ID


def plan_of(query: Query, index: CollectionIndex) -> Plan:
    """The plan of a query."""
    order = full_order(query)
    filters = [one for one in query.filters if index.covers(one.path)]
    every = [*_of_values(filters, index), *_of_elements(filters, index)]
    impossible = any(not one.keys for one in every)
    equalities = [one for one in every if len(one.keys) <= MAX_IN_VALUES]
    first = order[0]
    if first.field == DOCUMENT_ID or not index.covers(first.path):
        return Plan(order, None, equalities, impossible)
    part = _range(query, first, index)
    return Plan(order, part, equalities, impossible or part.low >= part.high)


def _of_values(filters: Sequence[Filter], index: CollectionIndex) -> list[Equality]:
    """One for each field with an equality: of its keys, those that no filter of it excludes."""
    keys: dict[str, set[bytes]] = {}
    for one in filters:
        if one.operator is Operator.EQUAL:
            accepted = {index_key(one.value)}
        elif one.operator is Operator.IN:
            accepted = _keys(one.value)
        else:
            continue
        keys[one.field] = keys.get(one.field, accepted) & accepted
    for one in filters:
        if one.field in keys and one.operator not in EQUALITIES:
            low, high = _bounds(one)
            inside = {key for key in keys[one.field] if low <= key < high}
            keys[one.field] = inside - _excluded(one)
    return [Equality(index.values(at.split(".")), tuple(sorted(its))) for at, its in keys.items()]


def _of_elements(filters: Sequence[Filter], index: CollectionIndex) -> list[Equality]:
    """One for each filter of a list's elements, as a list may have several of them."""
    made: list[Equality] = []
    for one in filters:
        if one.operator in (Operator.ARRAY_CONTAINS, Operator.ARRAY_CONTAINS_ANY):
            alone = one.operator is Operator.ARRAY_CONTAINS
            keys = _keys([one.value] if alone else one.value)
            made.append(Equality(index.elements(one.path), tuple(sorted(keys))))
    return list(dict.fromkeys(made))


def _keys(operands: Sequence[Json]) -> set[bytes]:
    return {index_key(value) for value in operands if value is not None}


def _excluded(one: Filter) -> set[bytes]:
    """Keys of which no value passes a filter, though they are between its bounds."""
    match one.operator:
        case Operator.NOT_EQUAL:
            operands = [one.value]
        case Operator.NOT_IN:
            operands = one.value
        case _:
            operands = []
    return {key for key in _keys(operands) if not is_cut(key)}


def _range(query: Query, first: Order, index: CollectionIndex) -> Range:
    low, high = FIRST, BEYOND
    for one in query.filters:
        if one.field == first.field:
            least, beyond = _bounds(one)
            low, high = max(low, least), min(high, beyond)
    for cursor, begins in ((query.start, True), (query.end, False)):
        if cursor is not None:
            least, beyond = _cursor_bounds(cursor, low=begins is not first.descending)
            low, high = max(low, least), min(high, beyond)
    return Range(index.values(first.path), low, high)


def _bounds(one: Filter) -> tuple[bytes, bytes]:
    """Between which keys the values are that pass a filter; those beside them do not."""
    if one.operator in (Operator.NOT_EQUAL, Operator.NOT_IN):
        return _next(NULL), BEYOND
    if one.operator in EQUALITIES:
        return FIRST, BEYOND
    if one.value is None:
        return BEYOND, FIRST
    return _comparison_bounds(one)


def _comparison_bounds(one: Filter) -> tuple[bytes, bytes]:
    """Of a comparison by size, which only values of the same type pass."""
    least, beyond = type_bounds(one.value)
    key = index_key(one.value)
    match one.operator:
        case Operator.LESS:
            return least, _next(key) if is_cut(key) else key
        case Operator.LESS_OR_EQUAL:
            return least, _next(key)
        case Operator.GREATER:
            return key if is_cut(key) else _next(key), beyond
        case _:
            return key, beyond


def _cursor_bounds(cursor: Cursor, *, low: bool) -> tuple[bytes, bytes]:
    """The same for a cursor; documents right there count where other fields may decide."""
    key = index_key(cursor.values[0])
    included = cursor.inclusive or len(cursor.values) > 1 or is_cut(key)
    if low:
        return (key if included else _next(key)), BEYOND
    return FIRST, (_next(key) if included else key)


def _next(key: bytes) -> bytes:
    """The first key after this one."""
    return key + b"\0"
