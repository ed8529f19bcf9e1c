"""A request to the SDK's server, and its way to the gate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from toolgate.gate.arguments import problem_of
from toolgate.gate.attachments import Delivery
from toolgate.gate.calls import Call
from toolgate.gate.errors import RateLimited, UnknownTool, printable
from toolgate.gate.pipeline import Gate
from toolgate.gate.policy import NO_RULE
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import BECAME_CALL
from toolgate.transports.mcp.methods import COUNTED
from toolgate.transports.mcp.plain import DRY_RUN
from toolgate.transports.refusals import count_list
from toolgate.transports.stream_credentials import Good

SdkContext = ServerRequestContext[Any]

TOO_EARLY = "Invalid request parameters"
"""What the SDK says of a request before `initialize`."""
INITIALIZE_FIRST = (
    "{} came before initialize. Send initialize, then notifications/initialized, then this again."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and how it wants it done."""

    principal: Principal
    request_id: str
    dry_run: bool = False
    good: Good | None = None
    """Whether the credential is good now; None where it cannot end."""


Who = Callable[[SdkContext], Caller]
"""From a request to its caller."""


class Requests:
    """What every handler needs: who asks, and the gate."""

    def __init__(self, gate: Gate, who: Who, transport: str) -> None:
        self.gate = gate
        self.who = who
        self.bus = InMemorySubscriptionBus()
        self._transport = transport

    def principal(self, raw: SdkContext) -> Principal:
        """Who sent this request."""
        return self.who(raw).principal

    def call_of(
        self,
        raw: SdkContext,
        tool: str,
        arguments: Any = None,
        attachments: Delivery = Delivery.INLINE,
    ) -> Call:
        """The call that a request makes."""
        caller = self.who(raw)
        if raw.request is not None:
            raw.request.scope[BECAME_CALL] = True
        return Call(
            tool=tool,
            arguments=arguments,
            principal=caller.principal,
            request_id=caller.request_id,
            transport=self._transport,
            dry_run=caller.dry_run or (raw.meta or {}).get(DRY_RUN, False) is not False,
            report=raw.session.report_progress,
            attachments=attachments,
        )

    async def check(self, ctx: SdkContext, call_next: CallNext) -> HandlerResult:
        """Count what becomes no call, and say in our words what the SDK refuses."""
        if ctx.method in COUNTED:
            await self._count(ctx)
        try:
            return await call_next(ctx)
        except ValidationError as invalid:
            message = f"Invalid params of {printable(ctx.method)}: {problem_of(invalid)}."
            raise MCPError(types.INVALID_PARAMS, message) from None
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                raise self.not_found(ctx, ctx.method, error) from None
            if error.message == TOO_EARLY:
                raise MCPError(error.code, INITIALIZE_FIRST.format(ctx.method)) from None
            raise

    async def _count(self, ctx: SdkContext) -> None:
        if refused := await count_list(self.gate, self.call_of(ctx, ctx.method)):
            raise MCPError(refused.rpc, refused.message)

    def not_found(self, raw: SdkContext, name: str, error: MCPError) -> MCPError:
        """What is answered to a request for what there is not: counted and audited like a call."""
        refused = self.gate.refuse(self.call_of(raw, name), UnknownTool(name), NO_RULE)
        return MCPError(refused.rpc, refused.message) if isinstance(refused, RateLimited) else error
