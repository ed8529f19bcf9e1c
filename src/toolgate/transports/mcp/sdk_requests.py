"""A request to the SDK's server, and its way to the gate."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError

from toolgate.gate.answers import Outcome
from toolgate.gate.errors import RateLimited, UnknownTool
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.policy import NO_RULE
from toolgate.gate.principal import Principal
from toolgate.transports.stream_credentials import Good

Raw = ServerRequestContext[Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and how it wants it done."""

    principal: Principal
    request_id: str
    dry_run: bool = False
    good: Good | None = None
    """Whether the credential is good now; None where it cannot end."""


Who = Callable[[Raw], Caller]
"""From a request to its caller."""


@dataclass(frozen=True, slots=True)
class LiveExchange:
    """An MCP request while it runs, for interactive tools."""

    raw: Raw
    params: Any
    publish: Callable[[Any], Awaitable[None]]


class Requests:
    """What every handler needs: who asks, and the gate."""

    def __init__(self, gate: Gate, who: Who, transport: str) -> None:
        self.gate = gate
        self.who = who
        self.bus = InMemorySubscriptionBus()
        self._transport = transport

    def principal(self, raw: Raw) -> Principal:
        """Who sent this request."""
        return self.who(raw).principal

    async def execute(self, raw: Raw, tool: str, arguments: Any, params: Any) -> Outcome:
        """One call through the gate."""
        caller = self.who(raw)
        return await self.gate.execute(
            Call(
                tool=tool,
                arguments=arguments,
                principal=caller.principal,
                request_id=caller.request_id,
                transport=self._transport,
                dry_run=caller.dry_run,
                exchange=LiveExchange(raw, params, self.bus.publish),
            )
        )

    async def only_known(self, ctx: Raw, call_next: CallNext) -> HandlerResult:
        """Refuse methods that there are not."""
        try:
            return await call_next(ctx)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            raise self.unknown(ctx, ctx.method, error) from None

    def unknown(self, raw: Raw, name: str, error: MCPError) -> MCPError:
        """What is answered to a request for what there is not: counted and audited like a call."""
        caller = self.who(raw)
        call = Call(
            tool=name,
            arguments=None,
            principal=caller.principal,
            request_id=caller.request_id,
            transport=self._transport,
        )
        refused = self.gate.refuse(call, UnknownTool(name), NO_RULE).error
        return MCPError(refused.rpc, refused.message) if isinstance(refused, RateLimited) else error


def given(native: Any) -> Any:
    """A handler's answer in the SDK's types; a protocol fault is raised."""
    if isinstance(native, MCPError):
        raise native
    return native
