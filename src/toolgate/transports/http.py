"""Plain HTTP: `POST /v1/tools/{name}` calls a tool, `GET /v1/tools` lists them."""

from typing import Any

import orjson

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import GateError, MethodNotAllowed
from toolgate.gate.outcomes import outcome_of_error
from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import (
    BODY_LIMIT,
    Receive,
    Scope,
    Send,
    call_of,
    error_headers,
    outcome_headers,
    parse_json,
    principal_of,
    read_body,
    send,
)
from toolgate.transports.attachments import send_attached
from toolgate.transports.refusals import count_list

PREFIX = "/v1/tools"


class ToolRoutes:
    """Every tool as an HTTP resource."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one request below `/v1/tools`."""
        name = scope["path"].removeprefix(PREFIX).removeprefix("/")
        wanted = "POST" if name else "GET"
        if scope["method"] != wanted:
            return await self._refuse(name, scope, to, MethodNotAllowed(scope["method"], wanted))
        if not name:
            return await self._list(scope, to)
        await self._call(name, scope, receive, to)

    async def _refuse(self, name: str, scope: Scope, to: Send, error: GateError) -> None:
        """Refuse a request that is no call, in the words of the tool where the caller sees it."""
        tool = self._gate.catalogue.find(name)
        seen = tool and self._gate.policy.decide(principal_of(scope), tool).visible
        outcome = outcome_of_error(error, tool if seen else None)
        await send(to, outcome.status, outcome.raw, error_headers(error))

    async def _list(self, scope: Scope, to: Send) -> None:
        if refused := await count_list(self._gate, call_of(scope, scope["path"])):
            outcome = outcome_of_error(refused, None)
            return await send(to, outcome.status, outcome.raw, error_headers(refused))
        visible = self._gate.visible(principal_of(scope))
        listed = {"tools": [tool_description(tool) for tool in visible]}
        return await send(to, 200, orjson.dumps(listed), [(b"cache-control", b"private, no-cache")])

    async def _call(self, name: str, scope: Scope, receive: Receive, to: Send) -> None:
        arguments: Any
        try:
            usual = self._gate.limits.settings.body_bytes
            body = await read_body(scope, receive, scope.get(BODY_LIMIT, usual))
            with_file = len(body) > usual
            arguments = parse_json(body, with_file=with_file) if body.strip() else None
            del body  # a large one is not to stay in memory beside what was in it
        except GateError as unreadable:
            arguments = unreadable
        outcome = await self._gate.execute(call_of(scope, name, arguments))
        if outcome.attached is not None:
            return await send_attached(scope, to, outcome)
        await send(to, outcome.status, outcome.raw, outcome_headers(outcome))


def route_of(tool: AnyTool) -> str:
    """The tool's own address, or the one that every tool has."""
    if tool.route:
        return f"{tool.route.method} {tool.route.path}"
    return f"POST {PREFIX}/{tool.name}"


def tool_description(tool: AnyTool) -> dict[str, Any]:
    """A tool as the catalogue shows it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "pack": tool.pack.name,
        "family": tool.family,
        "role": tool.role.value,
        "effect": tool.effect.value,
        "route": route_of(tool),
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
