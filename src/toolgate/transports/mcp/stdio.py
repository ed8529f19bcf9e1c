"""MCP on standard input and output, with the same gate, policy and audit as over HTTP.

Plain calls and lists are answered here, the same short way as over HTTP (docs/decisions/0005);
everything else is handed to the SDK. Answers come in the order in which they are ready.
"""

import asyncio
from typing import Any

import anyio

from toolgate.gate.attachments import Delivery
from toolgate.gate.calls import Call
from toolgate.gate.errors import GateError, InvalidArguments, Problem, RateLimited
from toolgate.gate.ids import OF_REQUESTS, Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import parse_json, too_large
from toolgate.transports.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    broken_rule,
    failure_line,
    id_around,
    id_in,
    id_of,
)
from toolgate.transports.large_bodies import most_bytes, tool_called
from toolgate.transports.mcp.client_pipes import claim_standard_streams
from toolgate.transports.mcp.handover import Handover, correlation_id
from toolgate.transports.mcp.lines import Line, LineTooLong
from toolgate.transports.mcp.plain import DRY_RUN, Plain, plain_request
from toolgate.transports.mcp.responses import Responses
from toolgate.transports.mcp.stdio_credential import TRANSPORT, CredentialHolder, Identify
from toolgate.transports.mcp.wire import Wire
from toolgate.transports.refusals import UNREADABLE, UNREADABLE_TOOL, count_list

SDK = "toolgate.transports.mcp.streams"
MAX_RUNNING = 256
"""Calls at once; while there are more, nothing new is read."""
LINE = "This line"
NAMES = {PARSE_ERROR: "Parse error", INVALID_REQUEST: "Invalid Request"}


async def serve_stdio(
    gate: Gate, principal: Principal, *, underscore_names: bool, identify: Identify | None = None
) -> None:
    """Answer one client until it closes its end; what runs then is finished first.

    `identify` is asked with every request whether the client's credential is still good. Raises
    OSError when the client does not read any more.
    """
    with claim_standard_streams() as (source, target):
        names = underscore_names
        client = StdioClient(
            gate, principal, source, target, underscore_names=names, identify=identify
        )
        await client.serve()


class StdioClient:
    """The one client of this process."""

    def __init__(
        self,
        gate: Gate,
        principal: Principal,
        source: int,
        target: int,
        *,
        underscore_names: bool,
        identify: Identify | None = None,
    ) -> None:
        self._gate = gate
        self._underscores = underscore_names
        self._ids = Ids(OF_REQUESTS)
        self._holder = CredentialHolder(gate, self._ids, principal, identify)
        self._responses = Responses(gate, underscore_names=underscore_names)
        self._longest = gate.limits.largest_body(gate.catalogue)
        self._wire = Wire(source, target, longest=self._longest, take=self._take)
        self._sdk = Handover(self._wire.write)
        self._loop = asyncio.get_running_loop()
        self._calls: dict[asyncio.Task[None], anyio.CancelScope] = {}
        self._running: dict[Id, anyio.CancelScope] = {}

    async def serve(self) -> None:
        """Take messages until there are no more, and answer them."""
        try:
            async with anyio.create_task_group() as tasks:
                given = (self._gate, self._holder, self._ids, self._underscores)
                tasks.start_soon(self._sdk.run, SDK, *given)
                await self._wire.read()
                self._sdk.end()
                if self._wire.lost:
                    tasks.cancel_scope.cancel()
                await self._wait_for_calls()
            await self._wire.flush()
        finally:
            with anyio.CancelScope(shield=True):
                for scope in self._calls.values():
                    scope.cancel()
                await self._wait_for_calls()
            self._sdk.end()
            self._wire.close()
        if self._wire.lost:
            raise self._wire.lost

    async def _wait_for_calls(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls)

    def _take(self, line: Line) -> None:
        """Answer a message, or see that it is answered."""
        if isinstance(line, LineTooLong):
            id = id_around(line.beginning, line.ending)
            return self._refuse(too_large(self._longest, LINE), PARSE_ERROR, id)
        try:
            message = parse_json(line)
        except InvalidArguments as problem:
            return self._refuse(problem, PARSE_ERROR, id_in(line))
        usual = self._gate.limits.settings.body_bytes
        if len(line) > usual and len(line) > (most := most_bytes(self._gate, tool_called(message))):
            return self._refuse(too_large(most, LINE), PARSE_ERROR, id_of(message))
        plain = plain_request(message, self._sdk.protocol)
        if plain is not None and self._is_simple(plain):
            self._answer(plain)
        elif rule := broken_rule(message):
            # The SDK leaves out what is no message, and its sender would wait for an answer.
            problem = InvalidArguments([Problem("message", "format", rule)])
            self._refuse(problem, INVALID_REQUEST, id_of(message))
        elif not self._cancel(message):
            self._sdk.take(line)

    def _is_simple(self, plain: Plain) -> bool:
        """Whether no SDK is needed; a tool that is hidden goes the same way as one unknown."""
        if "progressToken" in plain.meta:
            return False
        tool = self._gate.catalogue.find(plain.name)
        return (
            tool is None
            or not tool.limits.slow
            or not self._gate.policy.decide(self._holder.principal, tool).visible
        )

    def _answer(self, plain: Plain) -> None:
        self._sdk.answered = True
        scope = anyio.CancelScope()
        self._running[correlation_id(plain.id)] = scope
        self._calls[self._loop.create_task(self._call(plain, scope))] = scope
        if len(self._calls) == MAX_RUNNING:
            self._wire.pause_reading()

    async def _call(self, plain: Plain, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                answer = await self._response_to_call(plain)
            if not scope.cancel_called:  # a cancelled call is not answered
                self._wire.write(answer)  # pyright: ignore[reportPossiblyUnboundVariable]
        finally:
            self._finish(plain, scope)

    async def _response_to_call(self, plain: Plain) -> bytes:
        request_id = self._ids.new()
        try:
            refused = await self._holder.refusal(plain.method, plain.id, plain.name)
            if refused is not None:
                return refused
            call = Call(
                tool=plain.name or plain.method,
                arguments=plain.arguments,
                principal=self._holder.principal,
                request_id=request_id,
                transport=TRANSPORT,
                dry_run=plain.meta.get(DRY_RUN, False) is not False,
                attachments=Delivery.LINK,
            )
            if plain.method == "tools/list":
                return await self._response_to_list(plain, call)
            return self._responses.to_call(plain, await self._gate.execute(call))
        except Exception as problem:
            self._gate.failures.defect(request_id, f"MCP {plain.method}", problem)
            return failure_line(plain.id, INTERNAL_ERROR, "Internal error")

    async def _response_to_list(self, plain: Plain, call: Call) -> bytes:
        if refused := await count_list(self._gate, call):
            return failure_line(plain.id, refused.rpc, refused.message)
        return self._responses.to_list(plain, call.principal)

    def _finish(self, plain: Plain, scope: anyio.CancelScope) -> None:
        if len(self._calls) == MAX_RUNNING:
            self._wire.resume_reading()
        task = asyncio.current_task()
        assert task is not None
        del self._calls[task]
        key = correlation_id(plain.id)
        if self._running.get(key) is scope:  # not a later one of the same id
            del self._running[key]

    def _cancel(self, message: Any) -> bool:
        """Cancel a call that runs here; False when the message is not about one."""
        match message:
            case {
                "method": "notifications/cancelled",
                "params": {"requestId": str() | int() as id},
            }:
                scope = self._running.get(correlation_id(id))
            case _:
                return False
        if scope is None:
            return False
        scope.cancel()
        return True

    def _refuse(self, problem: GateError, code: int, id: Id | None) -> None:
        """Answer what is no message, under its id where that could be read."""
        call = Call(
            tool=UNREADABLE_TOOL,
            principal=self._holder.principal,
            request_id=self._ids.new(),
            transport=TRANSPORT,
        )
        error = self._gate.refuse(call, problem, UNREADABLE)
        if isinstance(error, RateLimited):
            return self._wire.write(failure_line(id, error.rpc, error.message))
        return self._wire.write(failure_line(id, code, f"{NAMES[code]}: {error.message}"))
