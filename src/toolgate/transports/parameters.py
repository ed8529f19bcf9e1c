"""Arguments as parts of a path or a query, which are text: what each means is its declared type's.

An argument that may be a string is the text itself. Every other is JSON, as it would be in a body:
`limit=5`, `active=true`, `filter={"a":1}`. A list of simple values is its name repeated. What is
not JSON stays text, and the tool refuses it in the words it has for a string in that place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from toolgate.gate.errors import InvalidArguments
from toolgate.transports.asgi import parse_json

Schema = dict[str, Any]
LOCAL = "#/$defs/"
SIMPLE = frozenset({"string", "number", "boolean", "null"})
EVERY = SIMPLE | {"array", "object"}
NAMES: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),
    (int | float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)
WHITE_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Parameter:
    """How one argument is written."""

    value: Callable[[str], Any]
    """From its text, or the text of one of its values, to what a body would hold."""
    repeats: bool = False
    """Whether it is a list with one parameter for each of its values."""
    is_json: bool = False
    """Whether it may be an object or another value that has no form but JSON."""


def parameters_of(schema: Schema) -> dict[str, Parameter]:
    """Every argument of a tool, from the JSON Schema of all of them."""
    declared: dict[str, Any] = schema.get("properties", {})
    return {name: _parameter(one, schema) for name, one in declared.items()}


def read_json(text: str) -> Any:
    """The value that a text is in JSON; the text itself where it is none."""
    if not text or text[0] in WHITE_SPACE or text[-1] in WHITE_SPACE:
        return text  # `+` is a space in a query, so `+5` would be a number
    try:
        return parse_json(text.encode())
    except (InvalidArguments, UnicodeEncodeError):
        return text


def _parameter(schema: Any, whole: Schema) -> Parameter:
    types = _types(schema, whole)
    if "string" in types:
        return Parameter(str)
    if "array" in types and types <= {"array", "null"}:
        items = _types(_items(schema, whole), whole)
        if items <= SIMPLE:
            return Parameter(str if "string" in items else read_json, repeats=True)
    return Parameter(read_json, is_json=not types <= SIMPLE)


def _items(schema: Any, whole: Schema) -> Any:
    """The schema of a list's values, where it has one."""
    schema = _target(schema, whole)
    kinds = schema.get("anyOf") or schema.get("oneOf") or [schema]
    lists = [_target(one, whole) for one in kinds if "array" in _types(one, whole)]
    return lists[0].get("items") if len(lists) == 1 else None


def _types(schema: Any, whole: Schema, seen: tuple[str, ...] = ()) -> frozenset[str]:
    """The JSON types that a schema allows, or more; an integer is a number."""
    if not isinstance(schema, dict):
        return EVERY
    schema = cast(Schema, schema)
    found = EVERY
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        found &= _types(_target(schema, whole), whole, (*seen, reference))
    if "type" in schema:
        said: Any = schema["type"]
        names: list[str] = [said] if isinstance(said, str) else said
        found &= frozenset("number" if one == "integer" else one for one in names)
    if "const" in schema or "enum" in schema:
        found &= frozenset(_named(schema.get("enum", [schema.get("const")])))
    for one in schema.get("allOf", ()):
        found &= _types(one, whole, seen)
    for choices in (schema.get("anyOf"), schema.get("oneOf")):
        if choices:
            found &= frozenset().union(*(_types(one, whole, seen) for one in choices))
    return found


def _target(schema: Any, whole: Schema) -> Schema:
    """The definition that a schema refers to; itself where it refers to none."""
    if not isinstance(schema, dict):
        return {}
    schema = cast(Schema, schema)
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(LOCAL):
        return schema
    found = whole.get("$defs", {}).get(reference.removeprefix(LOCAL), {})
    return cast(Schema, found) if isinstance(found, dict) else {}


def _named(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        yield next((name for kind, name in NAMES if isinstance(value, kind)), "null")
