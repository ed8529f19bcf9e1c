"""Which documents pass a filter."""

import operator as operators
from collections.abc import Callable
from typing import Any

from google.cloud.firestore_v1.types import query
from tests.firestore.wire_server.refusals import Message, invalid, unimplemented
from tests.firestore.wire_server.values import NAN, NULL, Key, key, value_at

MAX_DISJUNCTIONS = 30
MAX_NOT_IN = 10

Comparison = query.StructuredQuery.FieldFilter.Operator
Unary = query.StructuredQuery.UnaryFilter.Operator
Composite = query.StructuredQuery.CompositeFilter.Operator

WITHIN_A_TYPE: dict[int, Callable[[Any, Any], bool]] = {
    Comparison.EQUAL: operators.eq,
    Comparison.LESS_THAN: operators.lt,
    Comparison.LESS_THAN_OR_EQUAL: operators.le,
    Comparison.GREATER_THAN: operators.gt,
    Comparison.GREATER_THAN_OR_EQUAL: operators.ge,
}
OF_LISTS = (Comparison.IN, Comparison.NOT_IN, Comparison.ARRAY_CONTAINS_ANY)
NOT_ORDERED = (
    Comparison.EQUAL,
    Comparison.IN,
    Comparison.ARRAY_CONTAINS,
    Comparison.ARRAY_CONTAINS_ANY,
)


def flat(where: Message) -> list[Message]:
    """The conditions of a filter that joins them all by AND."""
    match where.WhichOneof("filter_type"):
        case None:
            return []
        case "composite_filter":
            if where.composite_filter.op != Composite.AND:
                raise unimplemented("only AND")
            return [one for inner in where.composite_filter.filters for one in flat(inner)]
        case kind:
            return [getattr(where, kind)]


def check(conditions: list[Message]) -> None:
    """Refuse what Firestore does not combine."""
    used = [one.op for one in conditions if is_comparison(one)]
    for one in conditions:
        if is_comparison(one) and one.op in OF_LISTS:
            check_list(one.op, one.value)
    if Comparison.NOT_IN in used:
        others = {Comparison.IN, Comparison.ARRAY_CONTAINS_ANY, Comparison.NOT_EQUAL}
        unary = [one.op for one in conditions if not is_comparison(one)]
        if others & {*used} or used.count(Comparison.NOT_IN) > 1 or Unary.IS_NOT_NULL in unary:
            raise invalid("Cannot use 'NOT_IN' with 'NOT_EQUAL', 'IN' or another 'NOT_IN'.")
    if used.count(Comparison.ARRAY_CONTAINS) > 1:
        raise invalid("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
    if {Comparison.ARRAY_CONTAINS, Comparison.ARRAY_CONTAINS_ANY} <= {*used}:
        raise invalid("Cannot use 'ARRAY_CONTAINS' with 'ARRAY_CONTAINS_ANY'.")
    disjunctions = 1
    for one in conditions:
        if is_comparison(one) and one.op in (Comparison.IN, Comparison.ARRAY_CONTAINS_ANY):
            disjunctions *= len(one.value.array_value.values)
    if disjunctions > MAX_DISJUNCTIONS:
        raise invalid("Too many disjunctions after normalization.")


def check_list(operator: int, value: Message) -> None:
    """Refuse a list of values that is empty or too long."""
    name = Comparison(operator).name
    most = MAX_NOT_IN if operator == Comparison.NOT_IN else MAX_DISJUNCTIONS
    if not 0 < len(value.array_value.values) <= most:
        raise invalid(f"'{name}' supports from 1 to {most} comparison values.")


def is_comparison(condition: Message) -> bool:
    """Whether a condition has a value to compare with."""
    return "value" in condition.DESCRIPTOR.fields_by_name


def is_inequality(condition: Message) -> bool:
    """Whether a condition decides the order of the answer."""
    if not is_comparison(condition):
        return condition.op in (Unary.IS_NOT_NULL, Unary.IS_NOT_NAN)
    return condition.op not in NOT_ORDERED


def passes(fields: Message, condition: Message) -> bool:
    """Whether a document passes one condition."""
    found = value_at(fields, condition.field.field_path)
    if found is None:
        return False
    if not is_comparison(condition):
        return passes_unary(key(found), condition.op)
    match condition.op:
        case Comparison.ARRAY_CONTAINS:
            return contains(found, [condition.value])
        case Comparison.ARRAY_CONTAINS_ANY:
            return contains(found, condition.value.array_value.values)
        case Comparison.IN | Comparison.NOT_IN:
            return is_among(key(found), condition.op, condition.value.array_value.values)
        case _:
            return passes_comparison(key(found), condition.op, key(condition.value))


def passes_unary(found: Key, operator: int) -> bool:
    """The conditions about null and NaN, which have no value to compare with."""
    match operator:
        case Unary.IS_NULL:
            return found == NULL
        case Unary.IS_NOT_NULL:
            return found != NULL
        case Unary.IS_NAN:
            return found == NAN
        case _:
            return found not in (NULL, NAN)


def contains(found: Message, values: Any) -> bool:
    """Whether an array holds one of the values; null is never found."""
    wanted = [key(one) for one in values if key(one) != NULL]
    return found.WhichOneof("value_type") == "array_value" and any(
        key(one) in wanted for one in found.array_value.values
    )


def is_among(found: Key, operator: int, values: Any) -> bool:
    """Whether a value is one of these, or none of them; of null, neither holds."""
    keys = [key(one) for one in values]
    if operator == Comparison.IN:
        return found != NULL and found in keys
    return found != NULL and NULL not in keys and found not in keys


def passes_comparison(found: Key, operator: int, wanted: Key) -> bool:
    """Comparisons hold within one type, save for "not equal"; null is unlike nothing."""
    if operator == Comparison.NOT_EQUAL:
        return found not in (NULL, wanted)
    return found[0] == wanted[0] and WITHIN_A_TYPE[operator](found, wanted)
