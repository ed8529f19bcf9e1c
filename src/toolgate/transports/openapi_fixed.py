"""The parts of the OpenAPI document that are the same for every catalogue."""

from typing import Any

Schema = dict[str, Any]

UNAUTHENTICATED = "No credentials, or not good ones."


def _json(description: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _text(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)} if values else {"type": "string"}


ERROR = {"error": _text()}
PARTS = _text("audit", "blobs", "counters", "database", "documents")
NAMES: Schema = {"type": "array", "items": PARTS}

RPC_REQUEST: Schema = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "method": {"type": "string", "description": "A tool's name."},
        "params": {"type": "object", "description": "Its arguments."},
    },
    "required": ["jsonrpc", "method"],
}

RPC_ANSWER: Schema = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "number", "null"]},
        "result": {},
        "error": {"type": "object", "required": ["code", "message"]},
    },
    "required": ["jsonrpc", "id"],
}


def _one_or_many(schema: Schema) -> Schema:
    either = {"oneOf": [schema, {"type": "array", "items": schema}]}
    return {"application/json": {"schema": either}}


PATHS: Schema = {
    "/v1/tools": {
        "get": {
            "operationId": "list_tools",
            "summary": "List the tools this caller may use",
            "responses": {
                "200": _json("The tools.", tools={"type": "array", "items": {"type": "object"}}),
                "401": _json(UNAUTHENTICATED, **ERROR),
            },
        }
    },
    "/rpc": {
        "post": {
            "operationId": "json_rpc",
            "summary": "Call tools by JSON-RPC 2.0: one request, a notification or a batch",
            "requestBody": {"required": True, "content": _one_or_many(RPC_REQUEST)},
            "responses": {
                "200": {"description": "The answers.", "content": _one_or_many(RPC_ANSWER)},
                "204": {"description": "There were only notifications."},
                "401": _json(UNAUTHENTICATED, **ERROR),
                "413": _json("The body is over the limit.", error={"type": "object"}),
            },
        }
    },
    "/healthz": {
        "get": {
            "operationId": "liveness",
            "summary": "Whether the process is alive",
            "security": [],
            "responses": {"200": _json("It is.", status=_text("ok"))},
        }
    },
    "/readyz": {
        "get": {
            "operationId": "readiness",
            "summary": "Whether calls are answered; else what fails",
            "security": [],
            "responses": {
                "200": _json("They are.", status=_text("ready")),
                "503": _json("They are not.", status=_text("unavailable"), failing=NAMES),
            },
        }
    },
    "/metrics": {
        "get": {
            "operationId": "metrics",
            "summary": "Figures for Prometheus, for admins",
            "responses": {
                "200": {
                    "description": "The figures.",
                    "content": {"text/plain": {"schema": {"type": "string"}}},
                },
                "401": _json(UNAUTHENTICATED, **ERROR),
                "403": _json("Only for admins.", **ERROR),
            },
        }
    },
}
