"""From `key=value` on the command line to a tool's arguments."""

import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from toolgate.cli.problems import Stop

Schema = dict[str, Any]


def read_arguments(pairs: Sequence[str], text: str | None, schema: Schema) -> Any:
    """The arguments: those given as JSON (`-` reads standard input), over them each `key=value`."""
    arguments: Any = _parse_json(sys.stdin.read() if text == "-" else text or "")
    from_pairs = dict(_split(pair, schema) for pair in pairs)
    if not from_pairs:
        return arguments
    if not isinstance(arguments, dict):
        raise Stop("--json must be an object when there are key=value arguments too.")
    return cast(Schema, arguments) | from_pairs


def _parse_json(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except ValueError as problem:
        step = """Write it like --json '{"key": "value"}'."""
        raise Stop(f"--json is not valid JSON: {problem}. {step}") from None


def _split(pair: str, schema: Schema) -> tuple[str, Any]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise Stop(f"{pair!r} is not an argument. Write key=value, or use --json '{{…}}'.")
    if value.startswith("@") and is_file_argument(schema, key):
        return key, _file_in_base64(key, value[1:])
    if is_text_argument(schema, key):
        return key, value
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _file_in_base64(key: str, file: str) -> str:
    """A file's bytes, as base64 on one line; `-` is standard input."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise Stop(f"{key}: the file {file!r} cannot be read: {why}.") from None
    return base64.b64encode(data).decode()


def is_file_argument(schema: Schema, key: str) -> bool:
    """Whether a tool's schema takes a file, in base64, for this argument."""
    return schema.get("properties", {}).get(key, {}).get("contentEncoding") == "base64"


def is_text_argument(schema: Schema, key: str) -> bool:
    """Whether a tool's schema takes text for this argument."""
    return _takes_text(schema, schema.get("properties", {}).get(key, {}))


def _takes_text(root: Schema, schema: Schema) -> bool:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _takes_text(root, root.get("$defs", {}).get(name, {}))
    options: list[Schema] = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return schema.get("type") == "string" or any(_takes_text(root, one) for one in options)
