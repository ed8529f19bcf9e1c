"""Literals as JSON means them: for Python, and so for Pydantic, `true` is 1."""

from collections.abc import Callable
from typing import Any, cast

from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import LiteralSchema, no_info_before_validator_function

NO_SCHEMAS = frozenset(["metadata", "default", "expected"])
"""What a schema has that may hold anything."""


def exact_literals(
    schema: Any, resolve: Callable[[Any], Any], within: frozenset[str] = frozenset()
) -> Any:
    """The same schema of Pydantic; in its literals no boolean is a number, and no number is one."""
    if isinstance(schema, list | tuple):
        many = cast("list[Any] | tuple[Any, ...]", schema)
        return type(many)(exact_literals(one, resolve, within) for one in many)
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    kind = members.get("type")
    if kind == "definition-ref":
        return _of_definition(members, resolve, within)
    verbatim = (
        NO_SCHEMAS if isinstance(kind, str) else ()
    )  # else it is the fields of a model, by name
    walked = {
        name: one if name in verbatim else exact_literals(one, resolve, within)
        for name, one in members.items()
    }
    if kind == "literal" and not all(isinstance(one, str) for one in walked["expected"]):
        return _exact(cast("LiteralSchema", walked))
    return walked


def _of_definition(
    ref: dict[str, Any], resolve: Callable[[Any], Any], within: frozenset[str]
) -> Any:
    """What a name stands for, where it has such literals; a model sees to its own."""
    definition = {key: one for key, one in resolve(ref).items() if key != "ref"}
    if ref["schema_ref"] in within or definition["type"] == "model":
        return ref
    exact = exact_literals(definition, resolve, within | {ref["schema_ref"]})
    return ref if exact == definition else exact


def _exact(literal: LiteralSchema) -> Any:
    valid = {(isinstance(one, bool), one) for one in literal["expected"]}
    options = " or ".join(repr(one) for one in literal["expected"])

    def check(value: object) -> object:
        if isinstance(value, int | float) and (isinstance(value, bool), value) not in valid:
            raise PydanticKnownError("literal_error", {"expected": options})
        return value

    return no_info_before_validator_function(check, literal)
