"""JSON Schemas as clients see them: small, flat, described."""

from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

Schema = dict[str, Any]


def input_schema(model: type[BaseModel]) -> Schema:
    """The schema of a tool's arguments."""
    schema = _tidy(model.model_json_schema(schema_generator=GenerateJsonSchema))
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def output_schema(model: type[BaseModel]) -> Schema:
    """The schema of a tool's answer."""
    schema = _tidy(model.model_json_schema(mode="serialization"))
    schema.pop("description", None)
    return schema


def without(schema: Schema, field: str) -> Schema:
    """The schema of the same object without one of its fields."""
    rest: Schema = {"properties": {**schema["properties"]}}
    del rest["properties"][field]
    if "required" in schema:
        rest["required"] = [name for name in schema["required"] if name != field]
    return schema | rest


def _tidy(node: Schema) -> Schema:
    """Leave out what Pydantic adds for itself: generated titles."""
    tidy: Schema = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        tidy[key] = _tidy_value(value, names=key in ("properties", "$defs"))
    return tidy


def _tidy_value(value: Any, *, names: bool) -> Any:
    if isinstance(value, dict):
        schema = cast(Schema, value)
        if names:
            return {name: _tidy(part) for name, part in schema.items()}
        return _tidy(schema)
    if isinstance(value, list):
        return [_tidy_value(part, names=False) for part in cast("list[Any]", value)]
    return value
