"""Queries: which documents, in which order, from where to where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1.types import query
from tests.firestore.wire_server.filters import check, flat, is_inequality, passes
from tests.firestore.wire_server.refusals import Message, invalid, unimplemented
from tests.firestore.wire_server.values import key, name_key, value_at

NAME = "__name__"
DESCENDING = query.StructuredQuery.Direction.DESCENDING


@dataclass(frozen=True, slots=True)
class Way:
    """One field of an order, and its direction."""

    path: str
    descending: bool


def found(documents: Iterable[Message], parent: str, asked: Message) -> list[Message]:
    """What a query finds."""
    if len(asked.from_) != 1 or asked.from_[0].all_descendants or asked.offset:
        raise unimplemented("one collection, from its beginning")
    prefix = f"{parent}/{asked.from_[0].collection_id}/"
    conditions = flat(asked.where)
    check(conditions)
    order = whole_order(asked, conditions)
    for cursor in (asked.start_at, asked.end_at):
        if len(cursor.values) > len(asked.order_by):
            raise invalid("Cursor has too many values: they are those of the order that is given.")
    placed = [
        (place, document)
        for document in documents
        if document.name.startswith(prefix)
        and "/" not in document.name.removeprefix(prefix)
        and all(passes(document.fields, one) for one in conditions)
        and (place := place_of(document, order)) is not None
        and is_inside(place, asked, order)
    ]
    for number in reversed(range(len(order))):  # a stable sort for each field, the last one first
        placed.sort(key=lambda one: one[0][number], reverse=order[number].descending)
    limit = asked.limit.value if asked.HasField("limit") else None
    return [document for _, document in placed[:limit]]


def whole_order(asked: Message, conditions: Sequence[Message]) -> list[Way]:
    """What is asked for; then the fields of inequalities by name, then the name."""
    order = [Way(one.field.field_path, one.direction == DESCENDING) for one in asked.order_by]
    descending = bool(order) and order[-1].descending
    ordered = {one.path for one in order}
    compared = {one.field.field_path for one in conditions if is_inequality(one)} - ordered
    order += [Way(path, descending) for path in sorted(compared)]
    if NAME not in ordered:
        order.append(Way(NAME, descending))
    return order


def place_of(document: Message, order: Sequence[Way]) -> list[Any] | None:
    """Where a document comes; None where it lacks a field of the order."""
    place: list[Any] = []
    for one in order:
        if one.path == NAME:
            place.append(name_key(document.name))
            continue
        value = value_at(document.fields, one.path)
        if value is None:
            return None
        place.append(key(value))
    return place


def is_inside(place: Sequence[Any], asked: Message, order: Sequence[Way]) -> bool:
    """Whether a place is between the cursors."""
    if asked.HasField("start_at"):
        side = side_of(place, asked.start_at, order)
        if side < 0 or (side == 0 and not asked.start_at.before):
            return False
    if asked.HasField("end_at"):
        side = side_of(place, asked.end_at, order)
        if side > 0 or (side == 0 and asked.end_at.before):
            return False
    return True


def side_of(place: Sequence[Any], cursor: Message, order: Sequence[Way]) -> int:
    """-1 for a place before the cursor, 1 for one after it."""
    for mine, value, one in zip(place, cursor.values, order, strict=False):
        other = cursor_key(value, one)
        if mine != other:
            return 1 if (mine > other) is not one.descending else -1
    return 0


def cursor_key(value: Message, one: Way) -> Any:
    """A value of a cursor; the place of a name is taken by a reference alone."""
    if one.path != NAME:
        return key(value)
    if value.WhichOneof("value_type") != "reference_value":
        raise invalid("Cursor for __name__ must be a reference.")
    return name_key(value.reference_value)
