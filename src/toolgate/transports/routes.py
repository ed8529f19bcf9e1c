"""Tools with an address of their own, such as `GET /api/entities/{entityId}`.

Arguments come from the path, the query and the body; a pack may take one from headers. Validation,
answer and audit are those of the tool. Which route is meant, and how each argument is written, is
found out once for all tools (`Routes._refresh`).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, cast
from urllib.parse import parse_qsl

import orjson

from toolgate.gate.arguments import shorten, unknown_argument
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.dialects import NEUTRAL, Dialect
from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    MethodNotAllowed,
    NotFound,
    Problem,
    UnknownTool,
)
from toolgate.gate.from_request import RequestHeaders
from toolgate.gate.path_templates import VARIABLE, pattern_of
from toolgate.gate.pipeline import Gate
from toolgate.gate.policy import NO_RULE
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    body_length,
    call_of,
    cookies_of,
    error_headers,
    header,
    outcome_headers,
    parse_json,
    principal_of,
    read_body,
    send,
    send_json,
)
from toolgate.transports.attachments import send_attached
from toolgate.transports.parameters import parameters_of
from toolgate.transports.refusals import NOTHING_THERE, refuse_unknown_path

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
        fixed, place, _ = tool.route.path.partition("{")
        self._start = (fixed.rpartition("/")[0] if place else fixed).split("/")[1:]
        self.body_field = tool.route.body
        self._parameters = parameters_of(tool.input_schema)
        self._header = tool.from_request and tool.from_request.argument
        left = {*pattern.groupindex, self._header}
        self._in_query = [name for name in self._parameters if name not in left]

    def shared_segments(self, path: str) -> int:
        """How many segments a path has in common with the fixed begin of the route."""
        ours, theirs = self._start, path.split("/", len(self._start) + 1)[1:]
        same = takewhile(lambda both: both[0] == both[1], zip(ours, theirs, strict=False))
        return sum(1 for _ in same)

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
        self._routed = [RoutedTool(tool) for tool in self._gate.catalogue if tool.route]
        self._table: dict[int, list[RoutedTool]] = defaultdict(list)
        for one in sorted(self._routed, key=lambda one: one.rank):
            self._table[len(one.rank)].append(one)

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer a request to a route, or say that there is nothing."""
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        there = self._at(scope["path"])
        caller, decide = principal_of(scope), self._gate.policy.decide
        for routed, found in there:  # the most exact first; a hidden one is in no other's way
            if routed.method == scope["method"] and decide(caller, routed.tool).visible:
                return await self._call(routed, found.groupdict(), scope, receive, to)
        await self._refuse(scope, to, [routed for routed, _ in there])

    def _at(self, path: str) -> list[Found]:
        near = self._table.get(path.count("/") + 1, ())
        return [(one, found) for one in near if (found := one.match(path))]

    async def _refuse(self, scope: Scope, to: Send, there: Sequence[RoutedTool]) -> None:
        """Say that nothing is here, or only for other methods.

        Where all is hidden, the same is said, counted and done as where there is nothing.
        """
        methods = sorted({one.method for one in self._visible(scope, there)})
        if methods:
            error = MethodNotAllowed(scope["method"], ", ".join(methods))
        else:
            error = self._count_refusal(scope, there)
        await self._send_error(scope, to, error)

    def _count_refusal(self, scope: Scope, there: Sequence[RoutedTool]) -> GateError:
        """The audit names the tool that is hidden, the caller gets to know nothing of it."""
        hidden = next((one.tool for one in there if one.method == scope["method"]), None)
        if hidden is None:
            return refuse_unknown_path(self._gate, scope, scope["path"], NO_RULE)
        rule = self._gate.policy.decide(principal_of(scope), hidden).rule
        return refuse_unknown_path(self._gate, scope, hidden.name, rule)

    async def _send_error(self, scope: Scope, to: Send, error: GateError) -> None:
        """Word an error as those routes do that begin with most of the path, and are visible."""
        dialect = _dialect(scope["path"], self._visible(scope, self._routed))
        await send_json(to, error.status, dialect.failure(error, False), error_headers(error))

    def _visible(self, scope: Scope, routed: Sequence[RoutedTool]) -> list[RoutedTool]:
        caller, decide = principal_of(scope), self._gate.policy.decide
        return [one for one in routed if decide(caller, one.tool).visible]

    async def _call(
        self, routed: RoutedTool, path: dict[str, str], scope: Scope, receive: Receive, to: Send
    ) -> None:
        arguments: Any
        try:
            arguments = routed.arguments(path, scope["query_string"])
            if routed.method != "GET":
                body = await read_body(scope, receive, self._gate.limits.settings.body_bytes)
                arguments = routed.with_body(arguments, path, body)
            elif body_length(scope) != 0:
                raise InvalidArguments([Problem("body", "unknown", NO_BODY)])
        except GateError as unreadable:
            arguments = unreadable
        headers = RequestHeaders(
            lambda name: header(scope, name.encode("ascii")), lambda: cookies_of(scope)
        )
        call = call_of(scope, routed.tool.name, arguments, request=headers)
        outcome = await self._gate.execute(call)
        if isinstance(outcome.error, UnknownTool):  # it was switched off meanwhile
            return await self._send_error(scope, to, NotFound(NOTHING_THERE))
        if outcome.attached is not None:
            return await send_attached(scope, to, outcome)
        raw = outcome.raw
        if routed.body_field and not outcome.error:
            raw = orjson.dumps(outcome.body[routed.body_field])
        await send(to, outcome.status, raw, outcome_headers(outcome))


def _dialect(path: str, routed: Sequence[RoutedTool]) -> Dialect:
    """The dialect of those that begin with most of a path; the neutral one where packs differ."""
    shared = [(one.shared_segments(path), one.tool.pack.dialect) for one in routed]
    most = max((number for number, _ in shared), default=0)
    dialects = {dialect for number, dialect in shared if number == most}
    return dialects.pop() if most and len(dialects) == 1 else NEUTRAL


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        message = "The query string is not valid UTF-8"
        raise InvalidArguments([Problem("query", "format", message)]) from None


def _given_twice(name: str, *, in_path: bool) -> Problem:
    """An argument that the body repeats."""
    if in_path:
        message = f"{name} is part of the path. Leave it out of the body"
    else:
        message = f"{name} is given in the query and in the body. Give it once"
    return Problem(name, "value", message)
