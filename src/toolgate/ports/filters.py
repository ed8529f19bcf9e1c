"""What a filter means: one definition, used by every adapter that filters in Python.

The rules are Firestore's. Values compare only with values of their own type; numbers are one
type, booleans are not numbers. A document that lacks the field matches nothing, `!=` included.
`!=` holds between values of different types. Null equals null in `==` and matches nothing else;
a `not-in` whose list holds null matches nothing at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from toolgate.ports.documents import Fields, Filter, Json, Operator

MISSING = object()
BY_SIZE = {
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
}
"""Only these ask for the order of two values."""


class SortedFields(Fields):
    """A map with its names in their order, in all that is in it too."""


def for_many(one: Filter) -> Filter:
    """The same filter: a large value is put in order once, not for each document."""
    return replace(one, value=_in_order(one.value)) if one.operator in BY_SIZE else one


def _in_order(value: Json) -> Json:
    match value:
        case dict():
            fields = cast(Fields, value)
            return SortedFields({name: _in_order(fields[name]) for name in sorted(fields)})
        case list():
            return [_in_order(part) for part in cast("list[Json]", value)]
        case _:
            return value


def matches(fields: Fields, filters: Iterable[Filter]) -> bool:
    """Whether a document passes every filter."""
    return all(_passes(field_at(fields, f.path), f.operator, f.value) for f in filters)


def field_at(fields: Fields, path: Sequence[str]) -> Json:
    """The value at a dotted path, or MISSING."""
    value: Any = fields
    for segment in path:
        if not isinstance(value, dict) or segment not in value:
            return MISSING
        value = cast("dict[str, Any]", value)[segment]
    return value


def _passes(value: Json, operator: Operator, operand: Json) -> bool:
    if value is MISSING:
        return False
    match operator:
        case Operator.EQUAL:
            return equal(value, operand)
        case Operator.NOT_EQUAL:
            return value is not None and not equal(value, operand)
        case Operator.IN:
            return value is not None and any(equal(value, one) for one in operand)
        case Operator.NOT_IN:
            return (
                value is not None
                and None not in operand
                and not any(equal(value, one) for one in operand)
            )
        case Operator.ARRAY_CONTAINS:
            return _contains_any(value, [operand])
        case Operator.ARRAY_CONTAINS_ANY:
            return _contains_any(value, operand)
        case _:
            return _in_range(value, operator, operand)


def _contains_any(value: Json, operands: Sequence[Json]) -> bool:
    if not isinstance(value, list):
        return False
    elements = cast("list[Json]", value)
    known = [one for one in operands if one is not None]
    return any(equal(one, operand) for one in elements for operand in known)


def _in_range(value: Json, operator: Operator, operand: Json) -> bool:
    if operand is None or rank(value) != rank(operand):
        return False
    order = compare(value, operand)
    match operator:
        case Operator.LESS:
            return order < 0
        case Operator.LESS_OR_EQUAL:
            return order <= 0
        case Operator.GREATER:
            return order > 0
        case _:
            return order >= 0


def equal(left: Json, right: Json) -> bool:
    """Equality that keeps types apart: `1 == 1.0`, but `1 != True`."""
    if rank(left) != rank(right):
        return False
    if isinstance(left, list):
        values = cast("list[Json]", left)
        return len(values) == len(right) and all(map(equal, values, right))
    if isinstance(left, dict):
        fields = cast(Fields, left)
        return fields.keys() == right.keys() and all(
            equal(value, right[name]) for name, value in fields.items()
        )
    return compare(left, right) == 0


def rank(value: Json) -> int:
    """The place of a value's type in the order of types."""
    match value:
        case None:
            return 0
        case bool():
            return 1
        case int() | float():
            return 2
        case str():
            return 3
        case list():
            return 4
        case _:
            return 5


def compare(left: Json, right: Json) -> int:
    """Order two values: by type, then by value; text by code point."""
    by_type = rank(left) - rank(right)
    if by_type or left is None:
        return by_type
    if isinstance(left, list):
        return _compare_lists(cast("list[Json]", left), cast("list[Json]", right))
    if isinstance(left, dict):
        return _compare_maps(cast(Fields, left), cast(Fields, right))
    return (left > right) - (left < right)


def _compare_lists(left: Sequence[Json], right: Sequence[Json]) -> int:
    return _first_difference(left, right) or len(left) - len(right)


def _compare_maps(left: Fields, right: Fields) -> int:
    return _first_difference(_parts(left), _parts(right)) or len(left) - len(right)


def _first_difference(left: Iterable[Json], right: Iterable[Json]) -> int:
    for one, other in zip(left, right, strict=False):
        if order := compare(one, other):
            return order
    return 0


def _parts(fields: Fields) -> Iterator[Json]:
    """Names, each with its value after it."""
    for name in fields if isinstance(fields, SortedFields) else sorted(fields):
        yield name
        yield fields[name]
