"""JSON Schemas that users write: checked once, then used to read arguments and answers."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from toolgate.gate.arguments import (
    MAX_PROBLEMS,
    dotted_path,
    shorten,
    shorten_value,
    unknown_argument,
)
from toolgate.gate.errors import InvalidArguments, Problem

Schema = dict[str, Any]
SchemaCheck = Callable[[Any], list[Problem]]
LOCAL = "#/$defs/"
ELSEWHERE = {"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"}
PARTS = {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
MAX_OPTIONS = 20


class BadSchema(ValueError):
    """A schema cannot be used; the sentence says why."""


def without_unknown_names(schema: Schema) -> Schema:
    """The schema of arguments; unless it says otherwise, unknown names are refused."""
    full: Schema = {"type": "object", "properties": {}, **schema}
    return full if (ELSEWHERE | PARTS) & schema.keys() else full | {"additionalProperties": False}


def compile_schema(schema: Schema) -> SchemaCheck:
    """The schema, compiled. References lead only to its own definitions, never elsewhere."""
    # Imported here: only tools of one's own have schemas that are not models.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    if not is_json(schema):
        raise BadSchema("it holds something that is not JSON")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as problem:
        raise BadSchema(f"{_place(problem)}{shorten(problem.message)}") from None
    _check_plain(schema)
    # An empty registry: there is nothing to look up, and nothing is fetched.
    checked: Any = Draft202012Validator(schema, registry=Registry())
    names = list(schema.get("properties", {}))

    def check(value: Any) -> list[Problem]:
        try:
            errors: list[Any] = list(islice(checked.iter_errors(value), MAX_PROBLEMS))
        except RecursionError:
            return [Problem("arguments", "value", "arguments are nested too deeply")]
        return [one for error in errors for one in _problems(error, names)][:MAX_PROBLEMS]

    return check


def argument_reader(check: SchemaCheck) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Reads arguments: as they are, or every problem at once."""

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        if problems := check(arguments):
            raise InvalidArguments(problems)
        return arguments

    return read


def is_json(value: Any) -> bool:
    """Whether a value can be sent as JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _check_plain(schema: Schema) -> None:
    """Raise unless the schema describes an object, and refers only to itself."""
    if schema.get("type", "object") != "object":
        raise BadSchema('its type must be "object"')
    definitions = schema.get("$defs", {})
    for key, reference in _references(schema):
        if key != "$ref":
            raise BadSchema(f"{key} cannot be used here")
        if not reference.startswith(LOCAL):
            raise BadSchema(f"$ref {shorten(reference)!r} must point to {LOCAL}NAME in the schema")
        if reference.removeprefix(LOCAL) not in definitions:
            raise BadSchema(f"$ref {shorten(reference)!r} leads nowhere")


def _references(node: Any) -> Iterator[tuple[str, str]]:
    """Every keyword that refers to, or names, a place."""
    if isinstance(node, list):
        for one in cast("list[Any]", node):
            yield from _references(one)
    elif isinstance(node, dict):
        for key, one in cast(Schema, node).items():
            if key in ("$ref", "$dynamicRef", "$id") and isinstance(one, str):
                yield key, one
            yield from _references(one)


def _place(error: Any) -> str:
    path = dotted_path(error.absolute_path)
    return f"at {path}: " if path else ""


def _problems(error: Any, names: Sequence[str]) -> Iterator[Problem]:
    """One broken rule in the words of the gate; a rule about several names is several problems."""
    where = dotted_path(error.absolute_path)
    rule: str = error.validator
    if rule == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        # The library reports each missing name by itself.
        name = next(name for name in missing if error.message.startswith(repr(name)))
        field = f"{where}.{name}" if where else name
        yield Problem(field, "missing", f"{field} is required")
    elif rule == "additionalProperties" and error.validator_value is False:
        properties = error.schema.get("properties", {})
        known = list(properties) if where else list(names)
        for name in [name for name in error.instance if name not in properties][:MAX_PROBLEMS]:
            yield unknown_argument(shorten(name), known, where)
    else:
        field = where or "arguments"
        kind, words = _WORDS.get(rule, _other)(error.validator_value)
        yield Problem(field, kind, f"{field} {words}", shorten_value(error.instance))


Words = tuple[str, str]

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _type(types: Any) -> Words:
    kinds = [types] if isinstance(types, str) else types
    return "type", f"must be {' or '.join(_TYPES.get(kind, kind) for kind in kinds)}"


def _options(values: list[Any]) -> Words:
    options = ", ".join(
        shorten(json.dumps(one, ensure_ascii=False)) for one in values[:MAX_OPTIONS]
    )
    return "value", f"must be one of: {options}{', …' if len(values) > MAX_OPTIONS else ''}"


def _least_characters(least: Any) -> Words:
    return ("missing", "is required") if least == 1 else _length("at least", "character")(least)


def _range(words: str) -> Callable[[Any], Words]:
    return lambda bound: ("range", f"must {words.format(bound)}")


def _length(bound: str, unit: str) -> Callable[[Any], Words]:
    return lambda size: ("range", f"must have {bound} {size} {unit}{'' if size == 1 else 's'}")


def _other(limit: Any) -> Words:
    text = json.dumps(limit, ensure_ascii=False) if not isinstance(limit, dict | list) else ""
    return "value", f"does not fit its schema{f' ({shorten(text)})' if text else ''}"


_WORDS: dict[str, Callable[[Any], Words]] = {
    "type": _type,
    "enum": _options,
    "const": lambda value: _options([value]),
    "minLength": _least_characters,
    "maxLength": _length("at most", "character"),
    "minimum": _range("be at least {}"),
    "maximum": _range("be at most {}"),
    "exclusiveMinimum": _range("be greater than {}"),
    "exclusiveMaximum": _range("be less than {}"),
    "multipleOf": _range("be a multiple of {}"),
    "minItems": _length("at least", "item"),
    "maxItems": _length("at most", "item"),
    "uniqueItems": lambda _: ("value", "must not hold an item twice"),
    "pattern": lambda pattern: ("format", f"must match {shorten(pattern)}"),
    "anyOf": lambda forms: ("value", f"fits none of its {len(forms)} allowed forms"),
    "oneOf": lambda forms: ("value", f"must fit exactly one of its {len(forms)} allowed forms"),
}
