"""JSON-RPC 2.0: which messages can be answered, and how a refusal is worded."""

import json
import re
from typing import Any, cast

import orjson
from pydantic_core import from_json

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
VERSION = "2.0"
IDS = "a string, a number of at most 64 bits or null"
MCP_IDS = "a string or an integer of at most 64 bits"
SMALLEST_ID, LARGEST_ID = -(2**63), 2**64 - 1
"""What an answer can carry; a longer integer would be rounded, or could not be written at all."""
DIGITS = "+-.0123456789Ee"
LAST_ID = re.compile(
    rb"""[,{]\s*"id"\s*:\s*(?P<id>-?[0-9]{1,20}|"[^"\\]*")\s*"""
    rb"""(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*){0,2}\}\s*\Z"""
)
"""An id among the last members of a message: the last brace of all closes nothing else."""
REPLACED = "\N{REPLACEMENT CHARACTER}"

Id = str | int


def is_id(value: Any) -> bool:
    """Whether a value is an id as MCP has them: a string, or an integer of 64 bits."""
    if isinstance(value, str):
        return True
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and SMALLEST_ID <= value <= LARGEST_ID


def broken_rule(message: Any) -> str | None:
    """The rule that a parsed message of MCP breaks, so that nobody could answer it."""
    if not isinstance(message, dict):
        return "A message is one JSON object; batches are not possible."
    given = cast("dict[str, Any]", message)
    if given.get("jsonrpc") == VERSION and "method" not in given:
        answers = "id" in given and ("result" in given or "error" in given)
        return None if answers else "A message has a method, or an id and a result or an error."
    return broken_request(given, mcp=True)


def broken_request(message: Any, *, mcp: bool = False) -> str | None:
    """The rule that a request breaks; MCP knows fewer ids, and no params but named ones."""
    if not isinstance(message, dict):
        return "a request is an object."
    given = cast("dict[str, Any]", message)
    if given.get("jsonrpc") != VERSION:
        return f'jsonrpc must be "{VERSION}".'
    if not isinstance(given.get("method"), str):
        return "method must be a string."
    id = given.get("id", "")
    if not is_id(id) and (mcp or not isinstance(id, float | None)):
        return f"id must be {MCP_IDS if mcp else IDS}."
    if mcp and not isinstance(given.get("params"), dict | None):
        return "params must be an object."
    return None


def id_of(message: Any) -> Id | None:
    """The id under which a refused message can be answered; none for one that is an answer."""
    if not isinstance(message, dict) or "result" in message or "error" in message:
        return None
    id = cast("dict[str, Any]", message).get("id")
    return id if is_id(id) else None


def id_in(line: bytes) -> Id | None:
    """The id of a message that cannot be read as a whole: broken, cut, or no valid text.

    Only one outside of `params` counts: another's request must not be answered instead.
    """
    text = line.decode(errors="replace")
    try:
        found: Any = json.loads(text)
    except json.JSONDecodeError as problem:
        # A number where the readable part ends may have had more digits.
        found = _begun(text[: problem.pos].rstrip(DIGITS))
    except (ValueError, RecursionError):
        return None
    id = id_of(found)
    if isinstance(id, str) and (REPLACED in id or not _is_text(id)):
        return None
    return id


def id_around(beginning: bytes, ending: bytes) -> Id | None:
    """The id of a message of which only the beginning and the end are left."""
    begun = _begun(beginning.decode(errors="replace"))
    if isinstance(begun, dict) and ("result" in begun or "error" in begun):
        return None  # an answer is not answered
    last = LAST_ID.search(ending)
    return id_in(beginning) if last is None else id_in(b'{"id":%b}' % last["id"])


def _begun(text: str) -> Any:
    """What can be read of a message's beginning."""
    try:
        return from_json(text.encode(errors="replace"), allow_partial=True)
    except ValueError:
        return None


def _is_text(value: str) -> bool:
    """Whether a string has no half characters, which JSON can write and UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def failure(id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """An answer that says what is wrong."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": VERSION, "id": id, "error": error}


def failure_line(id: Any, code: int, message: str, data: Any = None) -> bytes:
    """The same, as bytes."""
    return orjson.dumps(failure(id, code, message, data))
