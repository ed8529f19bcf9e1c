"""Firestore's rules as its documentation has them, plain and slow: a model of a collection.

https://firebase.google.com/docs/firestore/manage-data/data-types (the order of values)
https://firebase.google.com/docs/firestore/query-data (filters, orders, cursors)
https://firebase.google.com/docs/firestore/manage-data/add-data (writes)
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cmp_to_key
from typing import Any

from toolgate.ports.documents import (
    Create,
    Cursor,
    Delete,
    DocumentExists,
    DocumentNotFound,
    Fields,
    Filter,
    Json,
    Merge,
    Order,
    Query,
    Set,
    Update,
    Write,
)
from toolgate.ports.transforms import ArrayRemove, ArrayUnion, DeleteField, Increment

NAME = "__name__"
NOTHING = object()
TYPES = [type(None), bool, (int, float), str, list, dict]
INEQUALITIES = ("<", "<=", ">", ">=", "!=", "not-in")


def rank(value: Json) -> int:
    """The place of a value's type among the types."""
    return next(number for number, kind in enumerate(TYPES) if isinstance(value, kind))


def compare(one: Json, other: Json) -> int:
    """Negative where the first comes before the second, positive where it comes after."""
    if rank(one) != rank(other):
        return rank(one) - rank(other)
    if isinstance(one, list):
        pairs = zip(one, other, strict=False)
        unlike = (compare(mine, theirs) for mine, theirs in pairs)
        return next(filter(None, unlike), len(one) - len(other))
    if isinstance(one, dict):
        return compare([[*pair] for pair in by_key(one)], [[*pair] for pair in by_key(other)])
    if one is None:
        return 0
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return (one > other) - (one < other)


def by_key(value: Fields) -> list[tuple[str, Json]]:
    """The entries of a map in the order of their keys."""
    return sorted(value.items(), key=lambda pair: pair[0].encode())


def is_equal(one: Json, other: Json) -> bool:
    return compare(one, other) == 0


def at_path(fields: Json, path: Sequence[str]) -> Any:
    """What is at a path, or NOTHING."""
    for name in path:
        if not isinstance(fields, dict) or name not in fields:
            return NOTHING
        fields = fields[name]
    return fields


# Queries


def passes(fields: Fields, one: Filter) -> bool:
    """Whether a document passes a filter."""
    value, wanted = at_path(fields, one.field.split(".")), one.value
    if value is NOTHING:
        return False
    match one.operator:
        case "==":
            return is_equal(value, wanted)
        case "!=":
            return value is not None and not is_equal(value, wanted)
        case "in":
            return value is not None and any(is_equal(value, each) for each in wanted)
        case "not-in":
            unlike = all(each is not None and not is_equal(value, each) for each in wanted)
            return value is not None and unlike
        case "array-contains" | "array-contains-any":
            each_wanted = [wanted] if one.operator == "array-contains" else wanted
            return isinstance(value, list) and any(
                is_equal(mine, each) for mine in value for each in each_wanted if each is not None
            )
        case _:
            return in_range(value, one.operator, wanted)


def in_range(value: Json, operator: str, wanted: Json) -> bool:
    if wanted is None or rank(value) != rank(wanted):
        return False
    side = compare(value, wanted)
    return {"<": side < 0, "<=": side <= 0, ">": side > 0, ">=": side >= 0}[operator]


def whole_order(filters: Iterable[Filter], order: Sequence[Order]) -> list[Order]:
    """The order that is given, then the fields of inequalities by name, then the id."""
    last = order[-1].descending if order else False
    given = [one.field for one in order]
    more = sorted({one.field for one in filters if one.operator in INEQUALITIES})
    added = [*(field for field in more if field not in given), *([] if NAME in given else [NAME])]
    return [*order, *(Order(field, last) for field in added)]


def found(documents: dict[str, Fields], query: Query) -> list[tuple[str, Fields]]:
    """What a query finds, in order."""
    order = whole_order(query.filters, query.order)

    def place(document_id: str) -> list[Any]:
        fields = documents[document_id]
        return [
            document_id if one.field == NAME else at_path(fields, one.field.split("."))
            for one in order
        ]

    def side(mine: Sequence[Any], theirs: Sequence[Any]) -> int:
        for one, (left, right) in zip(order, zip(mine, theirs, strict=False), strict=False):
            if unlike := compare(left, right):
                return -unlike if one.descending else unlike
        return 0

    def is_inside(mine: Sequence[Any]) -> bool:
        start, end = query.start, query.end
        return (start is None or _is_past(side(mine, start.values), start)) and (
            end is None or _is_past(-side(mine, end.values), end)
        )

    passing = [
        (place(document_id), document_id)
        for document_id, fields in documents.items()
        if all(passes(fields, one) for one in query.filters)
        and NOTHING not in place(document_id)
        and is_inside(place(document_id))
    ]
    passing.sort(key=cmp_to_key(lambda one, other: side(one[0], other[0])))
    return [(document_id, documents[document_id]) for _, document_id in passing[: query.limit]]


def _is_past(side: int, cursor: Cursor) -> bool:
    return side >= 0 if cursor.inclusive else side > 0


# Writes


def after(documents: dict[str, Fields], writes: Iterable[Write]) -> dict[str, Fields]:
    """The documents after writes, or what one of them raises."""
    documents = deepcopy(documents)
    for write in writes:
        name = write.document_id
        match write:
            case Create(fields=fields):
                if name in documents:
                    raise DocumentExists
                documents[name] = {}
                put_each(documents[name], top_level(fields))
            case Set(fields=fields):
                documents[name] = {}
                put_each(documents[name], top_level(fields))
            case Merge(fields=fields):
                put_each(documents.setdefault(name, {}), leaves(fields))
            case Update(changes=changes):
                if name not in documents:
                    raise DocumentNotFound
                put_each(documents[name], {tuple(p.split(".")): v for p, v in changes.items()})
            case Delete():
                documents.pop(name, None)
    return documents


def top_level(fields: Fields) -> dict[tuple[str, ...], Json]:
    return {(name,): value for name, value in fields.items()}


def leaves(fields: Fields) -> dict[tuple[str, ...], Json]:
    """What is in maps, by its path; an empty map is a leaf."""
    found: dict[tuple[str, ...], Json] = {}
    for name, value in fields.items():
        inside = leaves(value) if isinstance(value, dict) and value else {(): value}
        found |= {(name, *path): leaf for path, leaf in inside.items()}
    return found


def put_each(fields: Fields, changes: dict[tuple[str, ...], Json]) -> None:
    """Plain values first, then those that are worked out: as in one write of the protocol."""
    worked_out = {
        path: value
        for path, value in changes.items()
        if isinstance(value, Increment | ArrayUnion | ArrayRemove)
    }
    for path, value in changes.items():
        if path in worked_out:
            continue
        if isinstance(value, DeleteField):
            remove(fields, path)
        elif isinstance(value, dict):
            put(fields, path, {})
            put_each(fields, {(*path, name): inner for name, inner in value.items()})
        else:
            put(fields, path, deepcopy(value))
    for path, value in worked_out.items():
        put(fields, path, outcome(at_path(fields, path), value))


def remove(fields: Fields, path: tuple[str, ...]) -> None:
    above = at_path(fields, path[:-1])
    if isinstance(above, dict):
        above.pop(path[-1], None)


def put(fields: Fields, path: tuple[str, ...], value: Json) -> None:
    for name in path[:-1]:
        if not isinstance(fields.get(name), dict):
            fields[name] = {}
        fields = fields[name]
    fields[path[-1]] = value


def outcome(before: Any, value: Increment | ArrayUnion | ArrayRemove) -> Json:
    """What a transform makes of what is there."""
    if isinstance(value, Increment):
        is_number = isinstance(before, int | float) and not isinstance(before, bool)
        return before + value.by if is_number else value.by
    elements = list(before) if isinstance(before, list) else []
    if isinstance(value, ArrayRemove):
        gone = value.values
        return [one for one in elements if not any(is_equal(one, each) for each in gone)]
    for one in value.values:
        if not any(is_equal(one, each) for each in elements):
            elements.append(deepcopy(one))
    return elements
