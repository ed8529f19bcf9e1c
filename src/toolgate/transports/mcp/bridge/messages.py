"""What the bridge has to know of a message; the rest goes through unread."""

import json
from dataclasses import dataclass
from typing import Any, cast

import orjson

from toolgate.transports.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    broken_rule,
    id_in,
    id_of,
)

META = "io.modelcontextprotocol/"
HEADER_MISMATCH = -32020
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose target stands in the header Mcp-Name, and where the body has it."""


class UnreadableLine(ValueError):
    """A line that is no JSON-RPC message."""

    def __init__(self, code: int, message: str, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the client."""

    raw: bytes
    id: Any = None
    method: str | None = None
    params: Any = None

    @property
    def is_request(self) -> bool:
        """Whether an answer is owed."""
        return self.method is not None and self.id is not None

    @property
    def key(self) -> bytes:
        """The id in a form that tells 1 from "1"."""
        return orjson.dumps(self.id)

    @property
    def version(self) -> str | None:
        """The protocol it names itself, as those from 2026-07-28 on do; else None."""
        named = inner(inner(self.params, "_meta"), f"{META}protocolVersion")
        return named if isinstance(named, str) else None

    @property
    def target(self) -> str | None:
        """The tool, prompt or address it is about."""
        named = inner(self.params, NAMED.get(self.method or "", ""))
        return named if isinstance(named, str) else None


def inner(value: Any, name: str) -> Any:
    """A field of a JSON object; None where there is none."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def read(line: bytes) -> Message:
    """The message on a line; raises `UnreadableLine`."""
    try:
        found: Any = orjson.loads(line)
    except ValueError as problem:
        message = f"This line is not valid JSON: {problem}."
        raise UnreadableLine(PARSE_ERROR, message, id_in(line)) from None
    if rule := broken_rule(found):
        raise UnreadableLine(INVALID_REQUEST, rule, id_of(found))
    return Message(line, inner(found, "id"), inner(found, "method"), inner(found, "params"))


def one_line(body: bytes) -> bytes:
    """A JSON object without line breaks, as it came where it has none; raises ValueError."""
    body = body.strip()
    if not isinstance(orjson.loads(body), dict):
        raise UnreadableLine(INVALID_REQUEST, "a message is one JSON object")
    if b"\n" not in body and b"\r" not in body:
        return body
    # The standard library keeps every digit of long numbers.
    return json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":")).encode()
