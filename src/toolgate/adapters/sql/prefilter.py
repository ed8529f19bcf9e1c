"""Let the database drop documents that cannot pass a filter.

Every condition here is implied by the filter, never the other way round: what remains is still
checked by `ports.filters`.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, String, cast, false, func, literal, or_
from sqlalchemy.types import UserDefinedType

from toolgate.db.tables import documents
from toolgate.ports.documents import Filter, Operator

PLAIN = re.compile(r"[A-Za-z0-9_ -]+")
Condition = ColumnElement[bool]
Query = Select[Any, Any, Any]


class Jsonb(UserDefinedType[Any]):
    """PostgreSQL's binary JSON, without importing all of its dialect."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The type's name in SQL."""
        return "JSONB"


def narrow(query: Query, one: Filter, dialect: str) -> Query:
    """The query with what the database can check of this filter."""
    condition = _postgresql(one) if dialect == "postgresql" else _sqlite(one)
    return query if condition is None else query.where(condition)


def _postgresql(one: Filter) -> Condition | None:
    match one.operator:
        case Operator.EQUAL:
            return _contains(one.path, one.value)
        case Operator.IN:
            return or_(false(), *(_contains(one.path, value) for value in one.value))
        case Operator.ARRAY_CONTAINS:
            return _contains(one.path, [one.value])
        case _:
            return None


def _contains(path: list[str], value: Any) -> Condition:
    for segment in reversed(path):
        value = {segment: value}
    part = cast(literal(orjson.dumps(value).decode(), String), Jsonb)
    return cast(documents.c.fields, Jsonb).op("@>", is_comparison=True)(part)


def _sqlite(one: Filter) -> Condition | None:
    if not all(PLAIN.fullmatch(segment) for segment in one.path):
        return None
    field = func.json_extract(documents.c.fields, '$."' + '"."'.join(one.path) + '"')
    match one.operator:
        case Operator.NOT_EQUAL:
            return field.is_not(None)
        case Operator.IN:
            # One comparison a value: a list would be bound as the type of one of them.
            equal = [field == value for value in one.value]
            return or_(false(), *equal) if all(map(_comparable, one.value)) else None
        case Operator.ARRAY_CONTAINS:
            return None
        case operator:
            return COMPARISONS[operator](field, one.value) if _comparable(one.value) else None


def _comparable(value: Any) -> bool:
    """Whether SQLite compares this value as we do: text by bytes, numbers by size."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


COMPARISONS: dict[Operator, Callable[[Any, Any], Condition]] = {
    Operator.EQUAL: lambda field, value: field == value,
    Operator.LESS: lambda field, value: field < value,
    Operator.LESS_OR_EQUAL: lambda field, value: field <= value,
    Operator.GREATER: lambda field, value: field > value,
    Operator.GREATER_OR_EQUAL: lambda field, value: field >= value,
}
