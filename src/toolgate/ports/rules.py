"""What a document store accepts: Firestore's rules, checked before any store is touched.

Each function returns what is wrong, as the end of a sentence, or None.
"""

import json
import math
from typing import Any, cast

import orjson

from toolgate.ports.documents import (
    MAX_FIELD_BYTES,
    MAX_ID_BYTES,
    MAX_IN_VALUES,
    Fields,
    Json,
    Operator,
)
from toolgate.ports.filters import BY_SIZE

MAX_DEPTH = 20
MAX_DOCUMENT_BYTES = 1_048_576
OF_LISTS = {Operator.IN, Operator.NOT_IN, Operator.ARRAY_CONTAINS_ANY}
"""Comparisons with a list of values."""
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


def broken_id_rule(document_id: str) -> str | None:
    """The rule a document id breaks."""
    if not _is_text(document_id):
        return "must be valid Unicode text"
    if "/" in document_id or "\0" in document_id:
        return "must not contain '/' or a NUL character"
    if document_id in (".", ".."):
        return "must not be '.' or '..'"
    if _reserved(document_id):
        return "must not begin and end with '__'"
    if len(document_id.encode()) > MAX_ID_BYTES:
        return f"must have at most {MAX_ID_BYTES} bytes"
    return None


def broken_field_rule(field: str) -> str | None:
    """The rule a dotted field path breaks."""
    if not _is_text(field):
        return "must be valid Unicode text"
    if "\0" in field:
        return "must not contain a NUL character"
    if len(field.encode()) > MAX_FIELD_BYTES:
        return f"must have at most {MAX_FIELD_BYTES} bytes"
    segments = field.split(".")
    if not all(segments):
        return "must be a field name, or names joined by single dots"
    if any(_reserved(segment) for segment in segments):
        return "must not begin and end with '__'"
    return None


def broken_value_rule(value: Json, depth: int = 0) -> str | None:
    """The rule a value breaks, at any depth."""
    if depth > MAX_DEPTH:
        return f"must not be nested more than {MAX_DEPTH} levels deep"
    match value:
        case bool() | None:
            return None
        case str():
            return _broken_text(value)
        case int():
            inside = SMALLEST_INTEGER <= value <= LARGEST_INTEGER
            return None if inside else "must hold only integers of at most 64 bits"
        case float():
            return None if math.isfinite(value) else "must hold only finite numbers"
        case list():
            return _broken_list(cast("list[Json]", value), depth)
        case dict():
            return broken_fields_rule(cast(Fields, value), depth)
        case _:
            return "must be JSON"


def broken_operand_rule(operator: Operator, value: Json) -> str | None:
    """The rule a value breaks that a filter compares with."""
    if operator in OF_LISTS:
        if not isinstance(value, list) or not 1 <= len(cast("list[Json]", value)) <= MAX_IN_VALUES:
            return f"must be a list of 1 to {MAX_IN_VALUES} values for operator '{operator}'"
        problems = map(broken_value_rule, cast("list[Json]", value))
        return next((one for one in problems if one), None)
    if value is None and operator in BY_SIZE:
        return f"must not be null for operator '{operator}'"
    return broken_value_rule(value)


def broken_path_rule(path: str, *, of_document: bool) -> str | None:
    """The rule a path breaks: of a document, an even number of segments; of a collection, odd."""
    segments = path.split("/")
    if not all(segments):
        return "must be names joined by single slashes"
    if of_document is bool(len(segments) % 2):
        number, form = ("even", "users/UID") if of_document else ("odd", "users")
        kind = "a document" if of_document else "a collection"
        return f"must have an {number} number of segments, as {kind} has (such as {form})"
    problems = map(broken_id_rule, segments)
    return next((f"is not valid: a segment {problem}" for problem in problems if problem), None)


def broken_document_rule(fields: Fields) -> str | None:
    """The rule a document breaks as a whole: its size first, so that no more is walked through."""
    if json_bytes(fields) > MAX_DOCUMENT_BYTES:
        return f"must have at most {MAX_DOCUMENT_BYTES} bytes as JSON"
    return broken_fields_rule(fields)


def json_bytes(value: Json) -> int:
    """How many bytes a value has as JSON, also one that breaks rules."""
    try:
        return len(orjson.dumps(value))
    except TypeError:  # a large integer, half a character: for the one rule that names it
        try:
            return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
        except (TypeError, ValueError, RecursionError):
            return 0


def broken_fields_rule(fields: Fields, depth: int = 0) -> str | None:
    """The rule a document, or a map inside one, breaks."""
    for name in fields:
        if not name:
            return "must not have a field without a name"
        if _reserved(name):
            return f"must not have a field like {name!r} that begins and ends with '__'"
        if problem := _broken_text(name):
            return problem
    return _first(list(fields.values()), depth)


def _broken_list(values: list[Json], depth: int) -> str | None:
    if any(isinstance(value, list) for value in values):
        return "must not hold a list directly inside a list"
    return _first(values, depth)


def _first(values: list[Any], depth: int) -> str | None:
    problems = (broken_value_rule(value, depth + 1) for value in values)
    return next((problem for problem in problems if problem), None)


def _broken_text(value: str) -> str | None:
    if "\0" in value:
        return "must not contain a NUL character"
    return None if _is_text(value) else "must be valid Unicode text"


def _is_text(value: str) -> bool:
    """Whether a text has no half characters: JSON can write them, no database can keep them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reserved(name: str) -> bool:
    return len(name) >= 4 and name.startswith("__") and name.endswith("__")
