"""Schemas of an OpenAPI document as plain JSON Schema: without references, in one piece."""

from typing import Any, cast
from urllib.parse import unquote

Json = dict[str, Any]
MAX_DEEP = 24
MAX_NODES = 5_000
DROPPED = {"discriminator", "xml", "externalDocs", "readOnly", "writeOnly", "example", "deprecated"}
DATA = ("default", "enum", "const", "examples")
NAMES = ("properties", "patternProperties")
SEVERAL = ("oneOf", "anyOf")


class OperationSkipped(Exception):
    """An operation cannot become a tool; the words say why."""


class Resolver:
    """Follows references inside the document, with an end to it."""

    def __init__(self, document: Json, *, old: bool, absent: str = "readOnly") -> None:
        self._document = document
        self._absent = absent
        """Properties with this mark are not in the message, required or not."""
        self._old = old
        """OpenAPI 3.0 has a dialect of its own."""
        self._nodes = 0
        self.notes: list[str] = []

    def for_responses(self) -> "Resolver":
        """The same for answers, with a count of its own."""
        return Resolver(self._document, old=self._old, absent="writeOnly")

    def follow(self, node: Any, depth: int = 0) -> Json:
        """What a node is, or refers to."""
        if not isinstance(node, dict):
            raise OperationSkipped("a part of it is no object")
        schema = cast(Json, node)
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if depth > MAX_DEEP:
            raise OperationSkipped("its references go round in a circle")
        return self.follow(self._target(reference), depth + 1)

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise OperationSkipped(f"it refers to {reference}, outside the document")
        place: Any = self._document
        for part in reference[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if not isinstance(place, dict) or key not in place:
                raise OperationSkipped(f"it refers to {reference}, which is not there")
            place = cast(Json, place)[key]
        return place

    def resolve(self, node: Any, open_: tuple[str, ...] = ()) -> Any:
        """A schema with every reference put in its place; one that meets itself is cut."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OperationSkipped("its schema is too large")
        if isinstance(node, list):
            return [self.resolve(one, open_) for one in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        schema = cast(Json, node)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._inline(reference, open_)
        schema = self._without_absent(schema)
        return self._as_json_schema(
            {
                key: one if key in DATA else self._resolve_member(key, one, open_)
                for key, one in schema.items()
                if key not in DROPPED and not key.startswith("x-")
            }
        )

    def _without_absent(self, schema: Json) -> Json:
        required, properties = schema.get("required"), schema.get("properties")
        if not isinstance(required, list) or not isinstance(properties, dict):
            return schema
        names = cast(Json, properties)
        present = [
            one for one in cast("list[Any]", required) if not self._is_absent(names.get(one))
        ]
        return {**schema, "required": present}

    def _is_absent(self, node: Any) -> bool:
        return isinstance(node, dict) and self.follow(node).get(self._absent) is True

    def _resolve_member(self, key: str, node: Any, open_: tuple[str, ...]) -> Any:
        """Names are kept, whatever they are; only what stands under them is a schema."""
        if key not in NAMES or not isinstance(node, dict):
            return self.resolve(node, open_)
        return {name: self.resolve(one, open_) for name, one in cast(Json, node).items()}

    def _inline(self, reference: str, open_: tuple[str, ...]) -> Any:
        if reference in open_ or len(open_) >= MAX_DEEP:
            name = reference.rpartition("/")[2]
            note = f"{name} refers to itself and was cut there: anything is allowed"
            if note not in self.notes:
                self.notes.append(note)
            return {"description": f"{name}, as above."}
        return self.resolve(self._target(reference), (*open_, reference))

    def _as_json_schema(self, schema: Json) -> Json:
        """What OpenAPI 3.0 says in its own way, as JSON Schema says it."""
        if not self._old:
            return schema
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(exclusive := schema.get(bound), bool):
                del schema[bound]
                if exclusive and limit in schema:
                    schema[bound] = schema.pop(limit)
        if schema.pop("nullable", False) is True and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
            if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
                schema["enum"] = [*schema["enum"], None]
        return schema

    def merge(self, schema: Any) -> Json:
        """The schema of a body as one object: parts that all hold are put together."""
        if not isinstance(schema, dict):
            raise OperationSkipped("its body has no schema")
        root = cast(Json, schema)
        if any(word in root for word in SEVERAL):
            raise OperationSkipped("its body has several forms")
        parts = [self.merge(one) for one in root.get("allOf", ())]
        if not parts and root.get("type", "object") != "object":
            raise OperationSkipped("its body is not an object")
        if not parts and not root.keys() & {"properties", "additionalProperties"}:
            raise OperationSkipped("its body says nothing of its fields")
        merged: Json = {"properties": {}, "required": []}
        for part in (*parts, root):
            merged["properties"] |= part.get("properties", {})
            merged["required"] += part.get("required", [])
            if "additionalProperties" in part:
                merged["additionalProperties"] = part["additionalProperties"]
        return merged
