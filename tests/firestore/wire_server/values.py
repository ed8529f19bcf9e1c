"""Values of the protocol: how they compare, and where they are in a document."""

import math
import re
from typing import Any, TypeAlias

from tests.firestore.wire_server.refusals import Message, invalid

Key: TypeAlias = tuple[int, Any]

SEGMENT = re.compile(r"`((?:[^`\\]|\\.)+)`|([_a-zA-Z][_a-zA-Z0-9]*)", re.DOTALL)
TYPES = (
    "null_value",
    "boolean_value",
    "number",
    "timestamp_value",
    "string_value",
    "bytes_value",
    "reference_value",
    "geo_point_value",
    "array_value",
    "map_value",
)
NUMBER = TYPES.index("number")
NULL = (0, 0)
NAN = (NUMBER, (0, 0))


def key(value: Message) -> Key:
    """A Python value that compares as Firestore compares: by type, then by content."""
    kind: str = value.WhichOneof("value_type")
    content = getattr(value, kind)
    if kind in ("integer_value", "double_value"):
        return NAN if math.isnan(content) else (NUMBER, (1, content))
    return TYPES.index(kind), _content_key(kind, content)


def _content_key(kind: str, content: Any) -> Any:
    match kind:
        case "string_value":
            return content.encode()
        case "reference_value":
            return name_key(content)
        case "timestamp_value":
            return content.seconds, content.nanos
        case "geo_point_value":
            return content.latitude, content.longitude
        case "array_value":
            return tuple(key(one) for one in content.values)
        case "map_value":
            return tuple(sorted((name.encode(), key(one)) for name, one in content.fields.items()))
        case _:  # null is stored as 0; the others compare as they are
            return content


def name_key(name: str) -> tuple[bytes, ...]:
    """The names of documents compare segment by segment."""
    return tuple(segment.encode() for segment in name.split("/"))


def segments_of(path: str) -> list[str]:
    """The names in a field path, without their quotes."""
    names: list[str] = []
    at = 0
    while match := SEGMENT.match(path, at):
        quoted, plain = match.groups()
        names.append(plain or re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        at = match.end() + 1
        if path[match.end() : at] != ".":
            break
    if at <= len(path):
        raise invalid(f"Invalid property path {path!r}.")
    return names


def value_at(fields: Message, path: str) -> Message | None:
    """The value at a field path, or None where there is none."""
    *above, last = segments_of(path)
    for name in above:
        if name not in fields or fields[name].WhichOneof("value_type") != "map_value":
            return None
        fields = fields[name].map_value.fields
    return fields.get(last)


def put(fields: Message, path: str, value: Message) -> None:
    """Put a value at a field path; what is on the way and no map becomes one."""
    *above, last = segments_of(path)
    for name in above:
        if fields[name].WhichOneof("value_type") != "map_value":
            fields[name].map_value.SetInParent()
        fields = fields[name].map_value.fields
    fields[last].CopyFrom(value)


def remove(fields: Message, path: str) -> None:
    """Remove what is at a field path, if anything is; the way there stays as it is."""
    if value_at(fields, path) is None:
        return
    *above, last = segments_of(path)
    for name in above:
        fields = fields[name].map_value.fields
    del fields[last]
