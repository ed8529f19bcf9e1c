"""The seed's JSON Schemas and examples, as it has them; descriptions left out."""

import json
from pathlib import Path
from typing import Any

from toolgate import packs
from toolgate.gate.catalogue import AnyTool

SEED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "seed.json").read_text(encoding="utf-8")
)
TOOLS: dict[str, AnyTool] = {tool.name: tool for tool in packs.offers(["network"])[0].tools}
WIDER = {("firebase.read", "output", "data"), ("firebase.subscribe", "output", "initialData")}
"""Where our schema allows more: a path of the realtime database may hold a single value."""


def plain(schema: Any, root: Any = None) -> Any:
    """A schema of ours in the seed's form: references resolved, no null for what is left out."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [plain(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return plain({**named, **{k: v for k, v in schema.items() if k != "$ref"}}, root)
    if "anyOf" in schema:
        [one] = [one for one in schema["anyOf"] if one != {"type": "null"}]
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return plain({**one, **rest}, root)
    dropped = {"$defs", "description", "additionalProperties"}
    if schema.get("default", ...) in (None, "", []):
        dropped.add("default")
    if "properties" in schema:
        schema = {
            **schema,
            "properties": {k: plain(v, root) for k, v in schema["properties"].items()},
        }
        return {k: v for k, v in schema.items() if k not in dropped}
    return {k: plain(v, root) for k, v in schema.items() if k not in dropped}
