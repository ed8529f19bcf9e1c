"""How packs word success and failure: five dialects, one error tree. A pack chooses one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from toolgate.gate.errors import GateError, InvalidArguments, RateLimited

Body = dict[str, Any]
Schema = dict[str, Any]


RPC_NAMES = {
    -32100: "UNAUTHORIZED",
    -32101: "FORBIDDEN",
    -32102: "TOKEN_EXPIRED",
    -32200: "NOT_FOUND",
    -32201: "CONFLICT",
    -32202: "GONE",
    -32300: "VALIDATION_ERROR",
    -32301: "REQUIRED_FIELD",
    -32302: "INVALID_FORMAT",
    -32400: "RATE_LIMITED",
    -32401: "QUOTA_EXCEEDED",
    -32500: "FIREBASE_ERROR",
    -32501: "GITHUB_ERROR",
    -32502: "TIMEOUT",
}
"""What codes of JSON-RPC errors are called, unless a tool has another name for one."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The shape of a pack's answers."""

    success: Callable[[Any], Any]
    """From the handler's answer to the body on the wire."""
    success_schema: Callable[[Schema], Schema]
    """The same for the answer's JSON Schema."""
    failure: Callable[[GateError, bool], Body]
    """From an error to the body; the flag says whether a write failed."""
    sentence_over_mcp: bool = False
    """Whether MCP's text content is the plain sentence instead of the body."""


def _bare(result: Any) -> Any:
    return result


def _bare_schema(schema: Schema) -> Schema:
    return schema


def _flagged_failure(error: GateError, write: bool) -> Body:
    body: Body = {"error": error.message, **error.extra}
    if write:
        body["success"] = False
    return body


def _sentence_failure(error: GateError, write: bool) -> Body:
    return {"error": error.message, **error.extra}


def _status_success(result: Any) -> Body:
    return {"status": "success", "result": result}


def _status_schema(schema: Schema) -> Schema:
    return _wrap(
        schema,
        "result",
        status={"type": "string", "const": "success", "description": "Always success."},
    )


def _status_failure(error: GateError, write: bool) -> Body:
    body: Body = {"type": error.kind, "message": error.message}
    details: Body = dict(error.extra)
    if isinstance(error, InvalidArguments):
        details["fields"] = {problem.field: problem.message for problem in error.problems}
    if details:
        body["details"] = details
    return {"status": "error", "error": body}


def _envelope_success(result: Any) -> Any:
    paged = isinstance(result, dict) and "pagination" in result
    return cast(Any, result) if paged else {"data": cast(Any, result)}


def _envelope_schema(schema: Schema) -> Schema:
    return schema if "pagination" in schema.get("properties", {}) else _wrap(schema, "data")


def _envelope_failure(error: GateError, write: bool) -> Body:
    return {"error": {"code": error.code, "message": error.message}}


def _json_rpc_failure(error: GateError, write: bool) -> Body:
    told: Body = {"reason": error.message, "suggestion": error.next_step}
    name = RPC_NAMES.get(error.rpc)
    if isinstance(error, InvalidArguments) and error.problems:
        first = error.problems[0]
        told = {"field": first.field, "value": first.value, "reason": first.message}
        told["suggestion"] = first.suggestion or f"Correct {first.field}, and call again."
        name = first.name or name
    elif isinstance(error, RateLimited):
        told["retryAfter"] = error.retry_after
    if name:
        told["name"] = name
    return {"code": error.rpc, "message": error.message, "data": {**told, **error.extra}}


def _wrap(schema: Schema, key: str, **beside: Schema) -> Schema:
    """Put a schema under a key, keeping its definitions at the root."""
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    inner.setdefault("description", "The answer.")
    outer: Schema = {
        "type": "object",
        "properties": {**beside, key: inner},
        "required": [*beside, key],
        "additionalProperties": False,
    }
    if "$defs" in schema:
        outer["$defs"] = schema["$defs"]
    return outer


FLAGGED = Dialect(_bare, _bare_schema, _flagged_failure)
"""The bare answer; `{"error": "…"}`, with `"success": false` where a write failed."""
SENTENCE = Dialect(_bare, _bare_schema, _sentence_failure, sentence_over_mcp=True)
"""The bare answer; `{"error": "…"}`, over MCP the sentence alone."""
STATUS = Dialect(_status_success, _status_schema, _status_failure)
"""`{"status": "success", "result": …}`; `{"status": "error", "error": {type, message, …}}`."""
ENVELOPE = Dialect(_envelope_success, _envelope_schema, _envelope_failure)
"""`{"data": …}`, with `pagination` for lists; `{"error": {code, message}}`."""
JSON_RPC = Dialect(_bare, _bare_schema, _json_rpc_failure)
"""The bare answer; `{code, message, data{field, value, reason, suggestion, name}}` for errors."""

NEUTRAL = SENTENCE
"""For failures that belong to no pack, such as an unknown tool."""
