"""JSON and the values of Firestore."""

import base64
import math
from collections.abc import Mapping
from typing import Any, cast

from toolgate.adapters.firestore.messages import ArrayValue, MapValue, Message, Value
from toolgate.ports.documents import Fields, Json

NULL = 0
VECTOR = {"__type__": "__vector__"}
"""How a vector is told from a map with a field `value`."""
# As protocol buffers, and with them Firestore's REST interface, spell them in JSON.
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def to_message(value: Json) -> Message:
    """A JSON value as Firestore takes it."""
    match value:
        case dict():
            return Value(map_value=MapValue(fields=to_fields(cast(Fields, value))))
        case list():
            return Value(array_value=to_array(cast("list[Json]", value)))
        case None:
            return Value(null_value=NULL)
        case _:
            return _scalar(value)


def _scalar(value: Json) -> Message:
    match value:
        case bool():
            return Value(boolean_value=value)
        case int():
            return Value(integer_value=value)
        case float():
            return Value(double_value=value)
        case str():
            return Value(string_value=value)
        case _:
            raise ValueError(f"{type(value).__name__} is not JSON")


def to_array(values: list[Json]) -> Message:
    """JSON values as Firestore takes a list."""
    return ArrayValue(values=map(to_message, values))


def to_fields(fields: Fields) -> dict[str, Message]:
    """The fields of a document or of a map as Firestore takes them."""
    return {name: to_message(value) for name, value in fields.items()}


def fields_of(document: Message) -> Fields:
    """The fields of a document or of a map as JSON."""
    fields: Mapping[str, Message] = document.fields
    return {name: to_json(value) for name, value in fields.items()}


def to_json(value: Message) -> Json:
    """A Firestore value as JSON: what JSON lacks becomes text in its usual spelling."""
    kind = value.WhichOneof("value_type")
    content: Any = getattr(value, kind)
    match kind:
        case "null_value":
            return None
        case "map_value":
            fields = fields_of(content)
            return fields["value"] if VECTOR.items() <= fields.items() else fields
        case "array_value":
            return [to_json(one) for one in content.values]
        case "boolean_value" | "integer_value" | "string_value":
            return content
        case _:
            return _as_json(kind, content)


def _as_json(kind: str, content: Any) -> Json:
    match kind:
        case "double_value":
            return content if math.isfinite(content) else NOT_FINITE[str(content)]
        case "timestamp_value":
            return _timestamp(content)
        case "bytes_value":
            return base64.b64encode(content).decode("ascii")
        case "geo_point_value":
            return {"latitude": content.latitude, "longitude": content.longitude}
        case "reference_value":
            return content.partition("/documents/")[2]
        case _:
            return str(content)


def _timestamp(value: Message) -> str:
    """RFC 3339 in UTC, with no more digits than needed."""
    seconds = value.ToDatetime().isoformat(timespec="seconds")
    fraction = f".{value.nanos:09d}".rstrip("0") if value.nanos else ""
    return f"{seconds}{fraction}Z"
