"""What a setting must be, and that a value is not it, in one sentence."""

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

LONGEST_VALUE = 40
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    UUID: "a UUID",
    tuple[str, ...]: "a list of texts, or one text with commas",
    tuple[Path, ...]: "a path, or a list of paths",
}
NUMBER = "a whole number, 0 or more"
NUMBERS = f"a table of names, each with {NUMBER}"
STEPS = {
    "admin_key": " `openssl rand -hex 32` makes one.",
    "blobs.url": " BUCKET has 3 to 63 characters of a-z, 0-9, dots and -; a file's path begins "
    "with /.",
    "database.unindexed": " Each is COLLECTION.FIELD or *.FIELD, as in events.payload.",
    "outbound.allow": " Each is HOST:PORT, as in intranet.example:8443.",
}


def wrong_value(setting: str, field: Any, item: str, value: Any) -> str:
    """That a value does not fit, or an item in it; it is shown unless it may be a secret."""
    name, must_be = setting, expected(field)
    if item and must_be == NUMBERS:
        name, must_be = f"{setting}.{item}", NUMBER
    shown = f", not {_short(value)}" if field.repr else ""
    return f"Setting {name} must be {must_be}{shown}.{STEPS.get(name, '')}"


def expected(field: Any) -> str:
    """What a setting takes, with its bounds."""
    kind = _kind(field.annotation)
    if get_origin(kind) is Literal:
        return f"one of: {', '.join(get_args(kind))}"
    if get_origin(kind) is dict:
        return NUMBERS
    if field.examples:
        return f"one of: {', '.join(field.examples)}"
    return f"{WORDS.get(kind, 'of another type')}{_bounds(field.metadata)}"


def _kind(annotation: Any) -> Any:
    """The type without `None`: what is not set needs no words."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _bounds(metadata: list[Any]) -> str:
    names = ("min_length", "ge", "gt", "le")
    match {name: getattr(one, name) for one in metadata for name in names if hasattr(one, name)}:
        case {"min_length": least}:
            return f" of {least} characters or more"
        case {"ge": low, "le": high}:
            return f" from {low} to {high}"
        case {"gt": low, "le": high}:
            return f" above {low} and not above {high}"
        case {"ge": low}:
            return f", {low} or more"
        case {"gt": low}:
            return f" above {low}"
        case _:
            return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
