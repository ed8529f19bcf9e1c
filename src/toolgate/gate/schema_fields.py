"""The fields of a JSON Schema, one after the other, those of objects within it too."""

from collections.abc import Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]


class SchemaField(NamedTuple):
    """One field."""

    path: str
    """Where it stands, as `result.entries[].id`."""
    schema: Schema
    required: bool


def fields_in(schema: Schema) -> Iterator[SchemaField]:
    """Every field of an object; a type within itself is told once."""
    yield from _fields(schema, schema, "", ())


def resolved(schema: Schema, root: Schema) -> Schema:
    """What a schema refers to, or itself."""
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _fields(
    schema: Schema, root: Schema, before: str, within: tuple[str, ...]
) -> Iterator[SchemaField]:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        yield SchemaField(f"{before}{name}", one, name in required)
        for option in (one, *one.get("anyOf", ())):
            for part, mark in ((option, "."), (option.get("items"), "[].")):
                if part is None or (reference := part.get("$ref", "")) in within:
                    continue
                known = (*within, reference) if reference else within
                yield from _fields(resolved(part, root), root, f"{before}{name}{mark}", known)
