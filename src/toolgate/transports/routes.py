"""Tools with an address of their own, such as `GET /api/entities/{entityId}`.

Arguments come from the path, the query and the body; a pack may take one from headers. Validation,
answer and audit are those of the tool.
"""

import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import parse_qsl

from toolgate.gate.arguments import cut, unknown_argument
from toolgate.gate.calls import Call
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.dialects import Dialect
from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    MethodNotAllowed,
    NotFound,
    Problem,
    TooLarge,
    UnknownTool,
)
from toolgate.gate.from_request import Request
from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    cookies_of,
    error_headers,
    header,
    parse_json,
    principal_of,
    read_body,
    request_id_of,
    send,
    send_json,
)

NO_ROUTE = "There is no such route."
Schema = dict[str, Any]


class Routes:
    """Every tool that has a route, by method and path."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._refresh()

    def _refresh(self) -> None:
        self._epoch = self._gate.catalogue.epoch
        routed = [tool for tool in self._gate.catalogue if tool.route]
        self._table = [(_pattern(tool), tool) for tool in routed]
        self._dialects = {_first_segment(tool): tool.pack.dialect for tool in routed}

    def dialect(self, path: str) -> Dialect | None:
        """The dialect of everything below a path's first segment; None where no tool lives."""
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        return self._dialects.get(f"{path}/".split("/", 2)[1])

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one request below a path that belongs to tools."""
        here = [(tool, found) for pattern, tool in self._table if (found := pattern(scope["path"]))]
        for tool, found in here:
            if tool.route and tool.route.method == scope["method"]:
                return await self._call(tool, found.groupdict(), scope, receive, to)
        seen = self._gate.policy.visible(principal_of(scope), [tool for tool, _ in here])
        if not seen:
            return await self._refuse(scope, to, NotFound(NO_ROUTE))
        methods = ", ".join(sorted({tool.route.method for tool in seen if tool.route}))
        await self._refuse(scope, to, MethodNotAllowed(scope["method"], methods))

    async def _refuse(self, scope: Scope, to: Send, error: GateError) -> None:
        dialect = self.dialect(scope["path"])
        assert dialect is not None
        await send_json(to, error.status, dialect.failure(error, False), error_headers(error))

    async def _call(
        self, tool: AnyTool, path: dict[str, str], scope: Scope, receive: Receive, to: Send
    ) -> None:
        arguments: Any
        try:
            arguments = _from_query(scope["query_string"], tool, path)
            if scope["method"] not in ("GET", "DELETE"):
                arguments = await self._with_body(arguments, receive)
        except (InvalidArguments, TooLarge) as unreadable:
            arguments = unreadable
        outcome = await self._gate.execute(
            Call(
                tool=tool.name,
                arguments=arguments,
                principal=principal_of(scope),
                request_id=request_id_of(scope),
                transport="http",
                request=Request(
                    lambda name: header(scope, name.encode("ascii")), lambda: cookies_of(scope)
                ),
            )
        )
        if isinstance(outcome.error, UnknownTool):  # hidden from this caller, and so is its route
            return await self._refuse(scope, to, NotFound(NO_ROUTE))
        await send(to, outcome.status, outcome.raw, error_headers(outcome.error))

    async def _with_body(self, arguments: dict[str, Any], receive: Receive) -> Any:
        """The arguments of the body beside those of path and query."""
        body = await read_body(receive, self._gate.limits.bounds.body_bytes)
        given = parse_json(body) if body.strip() else None
        if given is None:
            return arguments
        if not isinstance(given, dict):
            return given  # refused by the tool's own check, in its words
        named = cast("dict[str, Any]", given)
        for name in named.keys() & arguments.keys():
            told = f"{name} is given in the query and in the body. Give it once"
            raise InvalidArguments([Problem(name, "value", told)])
        return arguments | named


def _pattern(tool: AnyTool) -> Callable[[str], re.Match[str] | None]:
    assert tool.route is not None
    parts = re.split(r"\{(\w+)\}", tool.route.path)
    pattern = "".join(
        f"(?P<{part}>[^/]+)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)
    )
    return re.compile(pattern).fullmatch


def _first_segment(tool: AnyTool) -> str:
    assert tool.route is not None
    return tool.route.path.split("/", 2)[1]


def _from_query(query: bytes, tool: AnyTool, path: dict[str, str]) -> dict[str, Any]:
    """The path's arguments and the query's; what the schema calls an integer becomes one."""
    found: dict[str, Any] = {**path}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        told = "The query string is not valid UTF-8"
        raise InvalidArguments([Problem("query", "format", told)]) from None
    filled = tool.from_request
    known: Schema = tool.input_schema.get("properties", {})
    for name, value in pairs:
        if filled and name == filled.argument:
            told = f"{name} is not a query parameter. Send it as the header {filled.preferred}"
            raise InvalidArguments([Problem(name, "unknown", told)])
        if name in path:
            told = f"{name} is part of the path. Leave it out of the query"
            raise InvalidArguments([Problem(name, "value", told)])
        if name in found:
            raise InvalidArguments([Problem(name, "value", f"{name} is given more than once")])
        found[name] = _typed(value, known.get(name, {}))
    if unknown := found.keys() - known.keys():
        left = {*path, filled.argument} if filled else {*path}
        possible = [name for name in known if name not in left]
        raise InvalidArguments([unknown_argument(cut(one), possible) for one in sorted(unknown)])
    return found


def _typed(value: str, schema: dict[str, Any]) -> Any:
    whole = schema.get("type") == "integer" or any(
        isinstance(one, int) for one in schema.get("enum", ())
    )
    return int(value) if whole and re.fullmatch(r"-?\d{1,18}", value, re.ASCII) else value
