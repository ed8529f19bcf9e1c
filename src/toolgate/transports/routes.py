"""Tools with an address of their own, such as `GET /api/entities/{entityId}`.

Arguments come from the path, the query and the body; a pack may take one from headers. Validation,
answer and audit are those of the tool. Which route is meant, and how each argument is written, is
found out once for all tools (`Routes._refresh`).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

from toolgate.gate.arguments import shorten, unknown_argument
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.dialects import NEUTRAL, Dialect
from toolgate.gate.errors import (
    InvalidArguments,
    MethodNotAllowed,
    NotFound,
    Problem,
    TooLarge,
    UnknownTool,
)
from toolgate.gate.from_request import RequestHeaders
from toolgate.gate.path_templates import VARIABLE, pattern_of
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    call_of,
    cookies_of,
    error_headers,
    header,
    headers_of,
    parse_json,
    principal_of,
    read_body,
    send,
    send_json,
)
from toolgate.transports.attachments import send_attached
from toolgate.transports.parameters import parameters_of

NO_ROUTE = "There is no such route."
NO_BODY = "A GET request has no body here. Put the arguments into the query"
Found = tuple["RoutedTool", re.Match[str]]


class RoutedTool:
    """A tool that has a route, and how a request to it is read."""

    def __init__(self, tool: AnyTool) -> None:
        assert tool.route is not None
        self.tool = tool
        self.method = tool.route.method
        pattern = pattern_of(tool.route.path)
        self.match = pattern.fullmatch
        segments = tool.route.path.split("/")
        self.rank = [2 if VARIABLE.fullmatch(one) else int("{" in one) for one in segments]
        """Of two routes that match, the lower one has more of fixed text where they differ."""
        self._parameters = parameters_of(tool.input_schema)
        self._header = tool.from_request and tool.from_request.argument
        left = {*pattern.groupindex, self._header}
        self._in_query = [name for name in self._parameters if name not in left]

    def arguments(self, path: dict[str, str], query: bytes) -> dict[str, Any]:
        """The arguments in the path and in the query."""
        known = self._parameters
        found: dict[str, Any] = {
            name: known[name].value(text) if name in known else text for name, text in path.items()
        }
        for name, text in _pairs(query):
            parameter = known.get(name)
            if name == self._header:
                raise self._in_header(name, "a query parameter")
            if name in path:
                message = f"{name} is part of the path. Leave it out of the query"
                raise InvalidArguments([Problem(name, "value", message)])
            if parameter is not None and parameter.repeats:
                found.setdefault(name, []).append(parameter.value(text))
            elif name in found:
                raise InvalidArguments([Problem(name, "value", f"{name} is given more than once")])
            else:
                found[name] = text if parameter is None else parameter.value(text)
        if unknown := found.keys() - known.keys():
            wrong = [unknown_argument(shorten(one), self._in_query) for one in sorted(unknown)]
            raise InvalidArguments(wrong)
        return found

    def with_body(self, arguments: dict[str, Any], path: dict[str, str], body: bytes) -> Any:
        """The arguments of the body beside those of path and query."""
        given = parse_json(body) if body.strip() else None
        if given is None:
            return arguments
        if not isinstance(given, dict):
            return given  # refused by the tool's own check, in its words
        named = cast("dict[str, Any]", given)
        if self._header in named:
            raise self._in_header(self._header, "a member of the body")
        if twice := sorted(named.keys() & arguments.keys()):
            raise InvalidArguments([_given_twice(name, in_path=name in path) for name in twice])
        return arguments | named

    def _in_header(self, name: str, place: str) -> InvalidArguments:
        filled = self.tool.from_request
        assert filled is not None
        message = f"{name} is not {place}. Send it as the header {filled.preferred}"
        return InvalidArguments([Problem(name, "unknown", message)])


class Routes:
    """Every tool that has a route, by method and path."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._refresh()

    def _refresh(self) -> None:
        self._epoch = self._gate.catalogue.epoch
        routed = [RoutedTool(tool) for tool in self._gate.catalogue if tool.route]
        self._table: dict[int, list[RoutedTool]] = defaultdict(list)
        for one in sorted(routed, key=lambda one: one.rank):
            self._table[len(one.rank)].append(one)
        self._dialects = _dialects(routed)
        self._depth = max((path.count("/") for path in self._dialects), default=0)

    def owns(self, path: str) -> bool:
        """Whether routes of tools begin with the first segment of this path."""
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        return "/" + f"{path}/".split("/", 2)[1] in self._dialects

    def dialect(self, path: str) -> Dialect:
        """How to word that there is nothing here: as the routes do that begin with most of it.

        Where these are of packs that differ, in no pack's words.
        """
        start = "/".join(path.split("/")[: self._depth + 1])
        while start:
            if start in self._dialects:
                return self._dialects[start]
            start = start.rpartition("/")[0]
        return NEUTRAL

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one request below a path that belongs to tools."""
        meant = [pair for pair in self._at(scope["path"]) if pair[0].method == scope["method"]]
        if not meant:
            return await self._refuse(scope, to)
        caller = principal_of(scope)
        routed, found = meant[0] if len(meant) == 1 else self._first_visible(meant, caller)
        await self._call(routed, found.groupdict(), scope, receive, to)

    def _at(self, path: str) -> list[Found]:
        near = self._table.get(path.count("/") + 1, ())
        return [(one, found) for one in near if (found := one.match(path))]

    def _first_visible(self, meant: Sequence[Found], caller: Principal) -> Found:
        """The most exact route; one that is hidden from the caller is not in another's way."""
        visible = (one for one in meant if self._gate.policy.decide(caller, one[0].tool).visible)
        return next(visible, meant[0])

    async def _refuse(self, scope: Scope, to: Send) -> None:
        """Say that nothing is here, or only for other methods: a hidden tool is as good as none."""
        path: str = scope["path"]
        tools = [routed.tool for routed, _ in self._at(path)]
        seen = self._gate.policy.visible(principal_of(scope), tools)
        methods = ", ".join(sorted({tool.route.method for tool in seen if tool.route}))
        error = MethodNotAllowed(scope["method"], methods) if methods else NotFound(NO_ROUTE)
        body = self.dialect(path).failure(error, False)
        await send_json(to, error.status, body, error_headers(error))

    async def _call(
        self, routed: RoutedTool, path: dict[str, str], scope: Scope, receive: Receive, to: Send
    ) -> None:
        arguments: Any
        try:
            arguments = routed.arguments(path, scope["query_string"])
            if routed.method != "GET":
                body = await read_body(receive, self._gate.limits.settings.body_bytes)
                arguments = routed.with_body(arguments, path, body)
            elif _has_body(scope):
                raise InvalidArguments([Problem("body", "unknown", NO_BODY)])
        except (InvalidArguments, TooLarge) as unreadable:
            arguments = unreadable
        headers = RequestHeaders(
            lambda name: header(scope, name.encode("ascii")), lambda: cookies_of(scope)
        )
        call = call_of(scope, routed.tool.name, arguments, request=headers)
        outcome = await self._gate.execute(call)
        if isinstance(outcome.error, UnknownTool):  # hidden from this caller, and so is its route
            return await self._refuse(scope, to)
        if outcome.attached is not None:
            return await send_attached(scope, to, outcome)
        await send(to, outcome.status, outcome.raw, error_headers(outcome.error))


def _dialects(routed: Sequence[RoutedTool]) -> dict[str, Dialect]:
    """The dialect below every path that routes begin with; the neutral one where packs differ."""
    found: dict[str, Dialect] = {}
    for one in routed:
        assert one.tool.route is not None
        dialect = one.tool.pack.dialect
        fixed, place, _ = one.tool.route.path.partition("{")
        start = fixed.rpartition("/")[0] if place else fixed
        while start:
            if found.setdefault(start, dialect) != dialect:
                found[start] = NEUTRAL
            start = start.rpartition("/")[0]
    return found


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        message = "The query string is not valid UTF-8"
        raise InvalidArguments([Problem("query", "format", message)]) from None


def _has_body(scope: Scope) -> bool:
    headers = headers_of(scope)
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _given_twice(name: str, *, in_path: bool) -> Problem:
    """An argument that the body repeats."""
    if in_path:
        message = f"{name} is part of the path. Leave it out of the body"
    else:
        message = f"{name} is given in the query and in the body. Give it once"
    return Problem(name, "value", message)
