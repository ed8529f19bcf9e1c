"""The short way for `tools/call` and `tools/list` over HTTP.

Takes a request only when every header and field is exactly as the protocol wants it and the
tool needs no live exchange; every other message goes to the SDK unchanged, and what is no message
is refused here (docs/decisions/0018). Both ways make the same `Call`, so checks, limits and audit
are the same (docs/decisions/0005).
"""

from collections.abc import Coroutine
from typing import Any, NamedTuple

from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    Problem,
    RateLimited,
    TooLarge,
    UnknownTool,
)
from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import (
    HEAD,
    PRINCIPAL,
    REQUEST_ID,
    WHITE_SPACE,
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
    answer,
    dry_run_of,
    error_headers,
    parse_json,
    principal_of,
    read_body,
    replayed,
    request_id_of,
    send_json,
)
from toolgate.transports.heads import Answer, Head, Heads, Pending, raw_key_of
from toolgate.transports.jsonrpc import INVALID_REQUEST, PARSE_ERROR, broken_rule, failure
from toolgate.transports.mcp.answers import Answers
from toolgate.transports.mcp.listing import TRANSPORT, mirrors_headers
from toolgate.transports.mcp.plain import Plain, plain_request
from toolgate.transports.refusals import refuse_unreadable

new_id = Ids().new
Answering = Answer | Coroutine[Any, Any, Answer] | None
ROUTING = {b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}


class Routing(NamedTuple):
    """What a request's headers say of it."""

    fits: bool
    """The media types are right, no routing header stands twice, and there is no session."""
    protocol: str | None
    method: str | None
    name: str | None
    dry_run: bool


class Front:
    """Answers plain requests itself, hands all others to the SDK."""

    def __init__(self, gate: Gate, sdk: ASGIApp, heads: Heads, *, underscore_names: bool) -> None:
        self._gate = gate
        self._sdk = sdk
        self._heads = heads
        self._answers = Answers(gate, underscore_names=underscore_names)
        self._refresh()

    def _refresh(self) -> None:
        """Forget what was made from tools that are no more."""
        self._epoch = self._gate.catalogue.epoch
        self._live = {
            spelling
            for tool in self._gate.catalogue
            if tool.interactive or tool.open_world or mirrors_headers(tool)
            for spelling in (tool.name, tool.alias)
        }
        """The tools, in either spelling, that only the SDK can serve."""

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one HTTP request to the MCP endpoint."""
        if scope["method"] != "POST":
            return await self._sdk(scope, receive, to)
        try:
            body = await read_body(receive, self._gate.limits.bounds.body_bytes)
        except TooLarge as problem:
            told = failure(None, INVALID_REQUEST, problem.message)
            return await self._refuse(scope, to, problem, told)
        routing = self._routing(scope)
        try:
            message = parse_json(body)
        except InvalidArguments as problem:
            told = failure(None, PARSE_ERROR, f"Parse error: {problem.message}")
            return await self._refuse(scope, to, problem, told)
        plain = _plain(routing, message)
        pending = self._respond(plain, routing, scope[PRINCIPAL], scope[REQUEST_ID])
        if pending is None and (rule := broken_rule(message)):
            # The SDK would carry some of these out and not answer them.
            problem = InvalidArguments([Problem("body", "format", rule)])
            told = failure(None, INVALID_REQUEST, f"Invalid Request: {rule}")
            return await self._refuse(scope, to, problem, told)
        if pending is None:
            again: Message = {"type": "http.request", "body": body, "more_body": False}
            return await self._sdk(scope, replayed(again, receive), to)
        answered = pending if isinstance(pending, Answer) else await pending
        return await answer(scope, answered.status, answered.body)

    def respond(self, head: Head, body: bytes) -> Pending:
        """Answer a request whose headers are known, if it is plain."""
        if len(body) > self._gate.limits.bounds.body_bytes:
            return None
        try:
            plain = _plain(head.routing, parse_json(body))
        except InvalidArguments:
            return None
        return self._respond(plain, head.routing, head.principal, new_id())

    def _respond(
        self, plain: Plain | None, routing: Routing, principal: Principal, request_id: str
    ) -> Answering:
        if plain is None:
            return None
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        if plain.method == "tools/list":
            return Answer(200, self._answers.listed(plain, principal), request_id)
        if plain.name in self._live and not self._is_hidden(principal, plain.name):
            return None
        call = Call(
            tool=plain.name,
            arguments=plain.arguments,
            principal=principal,
            request_id=request_id,
            transport=TRANSPORT,
            dry_run=routing.dry_run,
        )
        return self._called(plain, call)

    async def _called(self, plain: Plain, call: Call) -> Answer:
        outcome = await self._gate.execute(call)
        unknown = plain.modern and isinstance(outcome.error, UnknownTool)
        body = self._answers.called(plain, outcome)
        return Answer(400 if unknown else 200, body, call.request_id)

    def _routing(self, scope: Scope) -> Routing:
        """What the headers say; kept with them, where the same ones come again."""
        head: Head | None = scope.get(HEAD)
        if head is None:
            return _read(scope)
        if head.routing is None:
            head.routing = _read(scope)
        if head.routing.fits and (key := raw_key_of(scope)) is not None:
            head.respond = self.respond
            self._heads.keep_raw(key, head)
        return head.routing

    def _is_hidden(self, principal: Principal, name: str) -> bool:
        """A tool that is hidden goes the same way as one unknown."""
        tool = self._gate.catalogue.find(name)
        return tool is None or not self._gate.policy.decide(principal, tool).visible

    async def _refuse(
        self, scope: Scope, to: Send, problem: GateError, told: dict[str, Any]
    ) -> None:
        """Answer what is no message, or that there were too many of these."""
        refused = refuse_unreadable(
            self._gate,
            problem,
            principal=principal_of(scope),
            request_id=request_id_of(scope),
            transport=TRANSPORT,
        )
        if isinstance(refused, RateLimited):
            told = failure(None, refused.rpc, refused.message)
        await send_json(to, refused.status, told, error_headers(refused))


def _plain(routing: Routing, message: Any) -> Plain | None:
    """The request, if it is exactly what the short way can answer."""
    if not routing.fits:
        return None
    plain = plain_request(message, routing.protocol)
    if plain is not None and plain.modern:
        if routing.method != plain.method:
            return None
        if plain.name and routing.name != plain.name:
            return None
    return plain


def _read(scope: Scope) -> Routing:
    found: dict[bytes, str] = {}
    accept = content = b""
    twice = False
    for key, value in scope["headers"]:
        if key in ROUTING:
            twice = twice or key in found
            found[key] = value.decode("latin-1").strip(WHITE_SPACE)
        elif key == b"accept":
            accept += value
        elif key == b"content-type":
            content = value
    both = b"application/json" in accept and b"text/event-stream" in accept
    is_json = content.partition(b";")[0].strip() == b"application/json"
    return Routing(
        fits=both and is_json and not twice and b"mcp-session-id" not in found,
        protocol=found.get(b"mcp-protocol-version"),
        method=found.get(b"mcp-method"),
        name=found.get(b"mcp-name"),
        dry_run=dry_run_of(scope),
    )
