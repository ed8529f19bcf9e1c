"""The short way for `tools/call` and `tools/list` over HTTP.

Takes a request only when every header and field is exactly as the protocol wants it and the
tool is neither slow nor reaches out; every other message goes to the SDK unchanged, and what is no
message is refused here (docs/decisions/0018). Both ways make the same `Call`, so checks, limits and
audit are the same (docs/decisions/0005).
"""

from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any

from toolgate.gate.attachments import Delivery
from toolgate.gate.calls import Call
from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    MethodNotAllowed,
    Problem,
    RateLimited,
    TooLarge,
    UnknownTool,
    UnsupportedMediaType,
)
from toolgate.gate.ids import OF_REQUESTS, Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import (
    BECAME_CALL,
    BODY_LIMIT,
    HEAD,
    LARGE,
    PRINCIPAL,
    REQUEST_ID,
    ASGIApp,
    Receive,
    Scope,
    Send,
    call_of,
    error_headers,
    header,
    parse_json,
    read_body,
    replay,
    respond_json,
    send,
    send_json,
    too_large,
)
from toolgate.transports.connection.heads import Head, Heads, JsonResponse, Pending, raw_key_of
from toolgate.transports.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    broken_rule,
    failure,
    failure_line,
    id_of,
)
from toolgate.transports.large_bodies import most_bytes, tool_called
from toolgate.transports.mcp.headers import Routing, read_routing, unsupported_version
from toolgate.transports.mcp.large_messages import refusal_of_large
from toolgate.transports.mcp.listing import TRANSPORT, mirrors_headers
from toolgate.transports.mcp.methods import uncounted_method
from toolgate.transports.mcp.plain import DRY_RUN, MODERN, Plain, plain_request
from toolgate.transports.mcp.responses import Responses
from toolgate.transports.refusals import UNREADABLE, UNREADABLE_TOOL, count_list

new_id = Ids(OF_REQUESTS).new
MaybeResponse = JsonResponse | Coroutine[Any, Any, JsonResponse] | None
METHODS = ("POST", "GET", "DELETE")
"""Since 2026-07-28 only the first."""
NOT_JSON = "Content-Type must be application/json. Send the message as JSON, and say so."


class RequestRefused(Exception):
    """A request that is neither answered here nor given to the SDK."""

    def __init__(
        self, problem: GateError, response: dict[str, Any], *, is_noted: bool = False
    ) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.response = response
        self.is_noted = is_noted
        """Whether it has been counted and audited."""


class Front:
    """Answers plain requests itself, hands all others to the SDK."""

    def __init__(self, gate: Gate, sdk: ASGIApp, heads: Heads, *, underscore_names: bool) -> None:
        self._gate = gate
        self._sdk = sdk
        self._heads = heads
        self._responses = Responses(gate, underscore_names=underscore_names)
        self._refresh()

    def _refresh(self) -> None:
        """Forget what was made from tools that are no more."""
        self._epoch = self._gate.catalogue.epoch
        self._live = {
            spelling
            for tool in self._gate.catalogue
            if tool.limits.slow or tool.open_world or mirrors_headers(tool)
            for spelling in (tool.name, tool.alias)
        }
        """The tools, in either spelling, that only the SDK can serve."""

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one HTTP request to the MCP endpoint."""
        if scope["method"] == "POST":
            return await self._post(scope, receive, to)
        methods = METHODS[:1] if header(scope, b"mcp-protocol-version") == MODERN else METHODS
        if scope["method"] in methods:
            return await self._sdk(scope, receive, to)
        wrong = MethodNotAllowed(scope["method"], ", ".join(methods))
        response = failure(None, wrong.rpc, wrong.message)
        return await send_json(to, wrong.status, response, error_headers(wrong))

    async def _post(self, scope: Scope, receive: Receive, to: Send) -> None:
        try:
            body = await self._body(scope, receive)
            routing = self._routing(scope)
            size, usual = len(body), self._gate.limits.settings.body_bytes
            message = _message(routing, body, with_file=size > usual)
            if size > LARGE and (problem := refusal_of_large(message)):
                raise _too_large(problem, id_of(message))
            if size > usual:
                self._check_taken(message, size)
            plain = _plain(routing, message)
            pending = self._respond(plain, routing, scope[PRINCIPAL], scope[REQUEST_ID])
            if pending is None:
                _check(routing, message)
                await self._count(scope, message)
        except RequestRefused as refused:
            return await self._refuse(scope, to, refused)
        if pending is None:
            receive = replay({"type": "http.request", "body": body, "more_body": False}, receive)
        del body, message  # large ones are not to stay in memory beside what was in them
        if pending is None:
            return await self._hand_to_sdk(scope, receive, to, large=size > LARGE)
        response = pending if isinstance(pending, JsonResponse) else await pending
        if response.retry_after:
            wait = [(b"retry-after", b"%d" % response.retry_after)]
            return await send(to, response.status, response.body, wait)
        return await respond_json(scope, response.status, response.body)

    async def _hand_to_sdk(self, scope: Scope, receive: Receive, to: Send, *, large: bool) -> None:
        """Let the SDK answer; a large message is a call, whatever becomes of it."""
        try:
            await self._sdk(scope, receive, to)
        finally:
            if large and BECAME_CALL not in scope:
                with suppress(GateError):  # it is answered; the next is refused unread
                    if waiting := self._gate.limits.admit(scope[PRINCIPAL], ""):
                        await waiting

    async def _count(self, scope: Scope, message: Any) -> None:
        """Count what nobody else does, and refuse what is one too many."""
        if (method := uncounted_method(message)) is None:
            return
        call = call_of(scope, method, transport=TRANSPORT)
        try:
            await self._gate.limits.check_left(call.principal)
        except GateError as limited:
            self._gate.note_uncounted(call, limited)
            error: GateError | None = limited
        else:
            error = await count_list(self._gate, call)
        if error is not None:
            response = failure(id_of(message), error.rpc, error.message)
            raise RequestRefused(error, response, is_noted=True)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        most = scope.get(BODY_LIMIT, self._gate.limits.settings.body_bytes)
        try:
            return await read_body(scope, receive, most)
        except TooLarge as problem:
            raise _too_large(problem) from None
        except GateError as problem:
            response = failure(None, problem.rpc, problem.message)
            raise RequestRefused(problem, response) from None

    def _check_taken(self, message: Any, size: int) -> None:
        if size > (most := most_bytes(self._gate, tool_called(message))):
            raise _too_large(too_large(most))

    def respond(self, head: Head, body: bytes) -> Pending:
        """Answer a request whose headers are known, if it is plain."""
        if len(body) > self._gate.limits.settings.body_bytes:
            return None
        try:
            plain = _plain(head.routing, parse_json(body))
        except InvalidArguments:
            return None
        return self._respond(plain, head.routing, head.principal, new_id())

    def _respond(
        self, plain: Plain | None, routing: Routing, principal: Principal, request_id: str
    ) -> MaybeResponse:
        if plain is None:
            return None
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        if plain.method == "tools/list":
            try:
                waiting = self._gate.limits.admit(principal, plain.method)
            except RateLimited as limited:
                return self._list_refusal(plain, principal, request_id, limited)
            if waiting is not None:
                return self._list_after(waiting, plain, principal, request_id)
            return JsonResponse(200, self._responses.to_list(plain, principal), request_id)
        if plain.name in self._live and not self._is_hidden(principal, plain.name):
            return None
        call = Call(
            tool=plain.name,
            arguments=plain.arguments,
            principal=principal,
            request_id=request_id,
            transport=TRANSPORT,
            dry_run=routing.dry_run or plain.meta.get(DRY_RUN, False) is not False,
            attachments=Delivery.LINK,
        )
        return self._call(plain, call)

    async def _list_after(
        self, waiting: Awaitable[None], plain: Plain, principal: Principal, request_id: str
    ) -> JsonResponse:
        """The list, once it is counted."""
        try:
            await waiting
        except GateError as error:
            return self._list_refusal(plain, principal, request_id, error)
        return JsonResponse(200, self._responses.to_list(plain, principal), request_id)

    def _list_refusal(
        self, plain: Plain, principal: Principal, request_id: str, error: GateError
    ) -> JsonResponse:
        """A list that was one too many, or could not be counted."""
        call = Call(
            tool=plain.method, principal=principal, request_id=request_id, transport=TRANSPORT
        )
        self._gate.note_uncounted(call, error)
        wait = error.retry_after if isinstance(error, RateLimited) else 0
        body = failure_line(plain.id, error.rpc, error.message)
        return JsonResponse(error.status, body, request_id, wait)

    async def _call(self, plain: Plain, call: Call) -> JsonResponse:
        outcome = await self._gate.execute(call)
        unknown = plain.modern and isinstance(outcome.error, UnknownTool)
        body = self._responses.to_call(plain, outcome)
        return JsonResponse(400 if unknown else 200, body, call.request_id)

    def _routing(self, scope: Scope) -> Routing:
        """What the headers say; kept with them, where the same ones come again."""
        head: Head | None = scope.get(HEAD)
        if head is None:
            return read_routing(scope)
        if head.routing is None:
            head.routing = read_routing(scope)
        if head.routing.fits and (key := raw_key_of(scope)) is not None:
            head.respond = self.respond
            self._heads.keep_raw(key, head)
        return head.routing

    def _is_hidden(self, principal: Principal, name: str) -> bool:
        """A tool that is hidden goes the same way as one unknown."""
        tool = self._gate.catalogue.find(name)
        return tool is None or not self._gate.policy.decide(principal, tool).visible

    async def _refuse(self, scope: Scope, to: Send, refused: RequestRefused) -> None:
        """Answer what is no message, or that there were too many of these."""
        call, response = call_of(scope, UNREADABLE_TOOL, transport=TRANSPORT), refused.response
        error = refused.problem
        if not refused.is_noted:
            error = self._gate.refuse(call, error, UNREADABLE)
        if error is not refused.problem and isinstance(error, RateLimited):
            response = failure(None, error.rpc, error.message)
        await send_json(to, error.status, response, error_headers(error))


def _too_large(problem: TooLarge, id: Id | None = None) -> RequestRefused:
    return RequestRefused(problem, failure(id, INVALID_REQUEST, problem.message))


def _message(routing: Routing, body: bytes, *, with_file: bool) -> Any:
    """The message in a body that is JSON, and said to be."""
    if not routing.is_json:
        wrong = UnsupportedMediaType(NOT_JSON)
        raise RequestRefused(wrong, failure(None, wrong.rpc, wrong.message))
    try:
        return parse_json(body, with_file=with_file)
    except InvalidArguments as problem:
        response = failure(None, PARSE_ERROR, f"Parse error: {problem.message}")
        raise RequestRefused(problem, response) from None


def _check(routing: Routing, message: Any) -> None:
    """Refuse what the SDK would carry out and not answer, or not answer in words of use."""
    if rule := broken_rule(message):
        problem = InvalidArguments([Problem("body", "format", rule)])
        raise RequestRefused(problem, failure(None, INVALID_REQUEST, f"Invalid Request: {rule}"))
    if response := unsupported_version(routing, message):
        version = Problem("MCP-Protocol-Version", "value", response["error"]["message"])
        raise RequestRefused(InvalidArguments([version]), response)


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
