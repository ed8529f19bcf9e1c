"""Let the database drop documents that cannot pass a filter.

Every condition here is implied by the filter, never the other way round: what remains is still
checked by `ports.filters`.
"""

import re
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, String, cast, func, literal, or_
from sqlalchemy.dialects.postgresql import JSONB

from toolgate.db.tables import documents
from toolgate.ports.documents import Filter, Operator

PLAIN = re.compile(r"[A-Za-z0-9_ -]+")
Condition = ColumnElement[bool]


def narrowed(query: Select[Any], one: Filter, dialect: str) -> Select[Any]:
    """The query with what the database can check of this filter."""
    condition = _postgresql(one) if dialect == "postgresql" else _sqlite(one)
    return query if condition is None else query.where(condition)


def _postgresql(one: Filter) -> Condition | None:
    match one.operator:
        case Operator.EQUAL:
            return _contains(one.path, one.value)
        case Operator.IN:
            return or_(*(_contains(one.path, value) for value in one.value))
        case Operator.ARRAY_CONTAINS:
            return _contains(one.path, [one.value])
        case _:
            return None


def _contains(path: list[str], value: Any) -> Condition:
    for segment in reversed(path):
        value = {segment: value}
    wanted = cast(literal(orjson.dumps(value).decode(), String), JSONB)
    return cast(documents.c.fields, JSONB).op("@>", is_comparison=True)(wanted)


def _sqlite(one: Filter) -> Condition | None:
    if not all(PLAIN.fullmatch(segment) for segment in one.path):
        return None
    found = func.json_extract(documents.c.fields, '$."' + '"."'.join(one.path) + '"')
    match one.operator, one.value:
        case Operator.EQUAL, str() | int() | float() as value if not isinstance(value, bool):
            return found == value
        case Operator.IN, list() as values if all(isinstance(v, str) for v in values):
            return found.in_(values)
        case Operator.LESS | Operator.LESS_OR_EQUAL as operator, str() | float() | int() as value:
            return found < value if operator is Operator.LESS else found <= value
        case Operator.GREATER | Operator.GREATER_OR_EQUAL as operator, (
            str() | float() | int() as value
        ):
            return found > value if operator is Operator.GREATER else found >= value
        case _:
            return found.is_not(None) if one.operator is Operator.NOT_EQUAL else None
