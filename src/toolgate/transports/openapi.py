"""OpenAPI 3.1 of what the caller may use."""

from importlib.metadata import version
from typing import Any

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import Receive, Scope, Send, principal_of, send_json
from toolgate.transports.http import PREFIX

Schema = dict[str, Any]

FAILURES = {
    "400": "The arguments break a rule; the text names field and rule.",
    "401": "No credentials, or not good ones.",
    "403": "Not allowed now; the text says which switch or rule.",
    "404": "What the arguments name does not exist.",
    "409": "It is already there.",
    "413": "The body is over the limit.",
    "422": "The answer would be over the limit.",
    "429": "Too many calls; see Retry-After.",
    "503": "Something this needs does not answer.",
    "504": "It took too long.",
}


class OpenApi:
    """Serves `/openapi.json`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """The document for this caller."""
        visible = self._gate.policy.visible(principal_of(scope), self._gate.catalogue)
        await send_json(to, 200, document(visible))


def document(tools: list[AnyTool]) -> Schema:
    """The OpenAPI document of these tools."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "toolgate",
            "version": version("toolgate"),
            "description": "One governed door between AI agents and an application's backend.",
        },
        "security": [{"key": []}],
        "paths": {f"{PREFIX}/{tool.name}": {"post": operation(tool)} for tool in tools},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def operation(tool: AnyTool) -> Schema:
    """One tool as an operation."""
    return {
        "operationId": tool.alias,
        "summary": tool.title,
        "description": tool.description,
        "tags": [tool.pack.name],
        "requestBody": {
            "required": bool(tool.input_schema.get("required")),
            "content": {"application/json": _content(tool.input_schema, tool.example)},
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": _content(tool.output_schema, None)},
            },
            **{status: _failure(words) for status, words in FAILURES.items()},
        },
    }


def _content(schema: Schema, example: Any) -> Schema:
    placed = {"schema": _self_contained(schema)}
    return placed | ({"example": example} if example else {})


def _self_contained(schema: Schema) -> Schema:
    """A schema with definitions of its own needs an id for its references to resolve."""
    return schema


def _failure(words: str) -> Schema:
    return {"description": words, "content": {"application/json": {"schema": {"type": "object"}}}}
