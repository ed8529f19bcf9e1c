"""Queries as Firestore takes them.

The whole order is sent, so a cursor can name any field of it, and no store decides on its own.
"""

from collections.abc import Sequence
from typing import Any, cast

from toolgate.adapters.firestore.messages import (
    Comparison,
    ComparisonOperator,
    Composite,
    CompositeOperator,
    CursorMessage,
    Direction,
    Field,
    FilterMessage,
    Message,
    OrderMessage,
    Selector,
    StructuredQuery,
    Unary,
    UnaryOperator,
    Value,
    quoted,
)
from toolgate.adapters.firestore.names import document_name
from toolgate.adapters.firestore.values import to_message
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    Filter,
    Json,
    Operator,
    Order,
    Query,
)
from toolgate.ports.ordering import full_order

OPERATORS: dict[Operator, Any] = {
    Operator.EQUAL: ComparisonOperator.EQUAL,
    Operator.NOT_EQUAL: ComparisonOperator.NOT_EQUAL,
    Operator.LESS: ComparisonOperator.LESS_THAN,
    Operator.LESS_OR_EQUAL: ComparisonOperator.LESS_THAN_OR_EQUAL,
    Operator.GREATER: ComparisonOperator.GREATER_THAN,
    Operator.GREATER_OR_EQUAL: ComparisonOperator.GREATER_THAN_OR_EQUAL,
    Operator.IN: ComparisonOperator.IN,
    Operator.NOT_IN: ComparisonOperator.NOT_IN,
    Operator.ARRAY_CONTAINS: ComparisonOperator.ARRAY_CONTAINS,
    Operator.ARRAY_CONTAINS_ANY: ComparisonOperator.ARRAY_CONTAINS_ANY,
}


def passes_nothing(one: Filter) -> bool:
    """Whether no document can pass: only `==` and `!=` know null, an empty list holds nothing."""
    match one.operator:
        case Operator.IN | Operator.ARRAY_CONTAINS_ANY:
            return all(value is None for value in one.value)
        case Operator.NOT_IN:
            return None in one.value
        case Operator.EQUAL | Operator.NOT_EQUAL:
            return False
        case _:
            return one.value is None


def query_message(query: Query, collection_id: str, root: str) -> Message:
    """A query of the collection of this id."""
    order = full_order(query)
    message = StructuredQuery(
        from_=[Selector(collection_id=collection_id)],
        where=_where(query.filters),
        order_by=[_order(one) for one in order],
    )
    if query.start is not None:
        values = _cursor_values(query, query.start, order, root)
        message.start_at.CopyFrom(CursorMessage(values=values, before=query.start.inclusive))
    if query.end is not None:
        values = _cursor_values(query, query.end, order, root)
        message.end_at.CopyFrom(CursorMessage(values=values, before=not query.end.inclusive))
    if query.limit is not None:
        message.limit.value = query.limit
    return message


def _where(filters: Sequence[Filter]) -> Message | None:
    messages = [filter_message(one) for one in filters]
    if len(messages) < 2:
        return next(iter(messages), None)
    every = Composite(op=CompositeOperator.AND, filters=messages)
    return FilterMessage(composite_filter=every)


def filter_message(one: Filter) -> Message:
    """A filter that some document can pass, as Firestore takes it."""
    field = Field(field_path=quoted(one.path))
    match one.operator:
        case Operator.EQUAL if one.value is None:
            return FilterMessage(unary_filter=Unary(field=field, op=UnaryOperator.IS_NULL))
        case Operator.NOT_EQUAL if one.value is None:
            return FilterMessage(unary_filter=Unary(field=field, op=UnaryOperator.IS_NOT_NULL))
        case Operator.NOT_IN if not one.value:  # Firestore takes no empty list; it means just that
            return FilterMessage(unary_filter=Unary(field=field, op=UnaryOperator.IS_NOT_NULL))
        case Operator.IN | Operator.ARRAY_CONTAINS_ANY:
            known = [value for value in cast("list[Json]", one.value) if value is not None]
            value = to_message(known)
        case _:
            value = to_message(one.value)
    compared = Comparison(field=field, op=OPERATORS[one.operator], value=value)
    return FilterMessage(field_filter=compared)


def _order(one: Order) -> Message:
    path = DOCUMENT_ID if one.field == DOCUMENT_ID else quoted(one.path)
    direction = Direction.DESCENDING if one.descending else Direction.ASCENDING
    return OrderMessage(field=Field(field_path=path), direction=direction)


def _cursor_values(
    query: Query, cursor: Cursor, order: Sequence[Order], root: str
) -> list[Message]:
    if len(cursor.values) > len(order):
        raise ValueError("a cursor has no more values than the order has fields")
    return [
        _id_value(value, query.collection, root) if one.field == DOCUMENT_ID else to_message(value)
        for value, one in zip(cursor.values, order, strict=False)
    ]


def _id_value(value: Json, collection: str, root: str) -> Message:
    if not isinstance(value, str):
        raise ValueError("the id in a cursor is text")  # noqa: TRY004 (a caller's mistake)
    return Value(reference_value=document_name(root, collection, value))
