"""Pydantic's errors, built only while they are few.

A list of 199,000 wrong items has as many errors. To count them costs nothing; to build them takes a
second or more, in which nobody else is answered, and Pydantic builds either all or none.
"""

from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator

from toolgate.gate.literals import NO_SCHEMAS

MAX_BUILT = 2000
COLLECTIONS = frozenset(["list", "dict", "set", "frozenset", "tuple"])


def errors_of(invalid: ValidationError) -> list[ErrorDetails]:
    """Every error; none where there are too many to build."""
    return invalid.errors(include_url=False) if invalid.error_count() <= MAX_BUILT else []


def first_errors(
    invalid: ValidationError, model: type[BaseModel], values: Any, context: Any
) -> list[ErrorDetails]:
    """Every error; where these are too many, those up to the first wrong item of each list.

    None at all where these are too many as well: unknown names in one object are no list.
    """
    if invalid.error_count() <= MAX_BUILT:
        return errors_of(invalid)
    # With `_use_prebuilt`, models within this one would still build an error for each item.
    validator: SchemaValidator = cast(Any, SchemaValidator)(
        _ending_at_first_error(model.__pydantic_core_schema__), _use_prebuilt=False
    )
    try:
        validator.validate_python(values, context=context)
    except ValidationError as fewer:
        return errors_of(fewer)
    return []


def _ending_at_first_error(schema: Any) -> Any:
    """The same schema, but that no list is looked at beyond its first wrong item."""
    if isinstance(schema, list | tuple):
        many = cast("list[Any] | tuple[Any, ...]", schema)
        return type(many)(_ending_at_first_error(one) for one in many)
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    kind = members.get("type")
    if not isinstance(kind, str):  # the fields of a model, by name
        return {name: _ending_at_first_error(one) for name, one in members.items()}
    walked = {
        name: one if name in NO_SCHEMAS else _ending_at_first_error(one)
        for name, one in members.items()
    }
    return walked | {"fail_fast": True} if kind in COLLECTIONS else walked
