"""The MCP SDK's low-level server, with our gate behind every handler.

Only this module and the `sdk_…` ones beside it know the SDK's server API (docs/decisions/0004).
"""

import functools
import secrets
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar, get_args

import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from toolgate.gate.errors import Unauthenticated
from toolgate.gate.failures import FailureLog
from toolgate.gate.pipeline import Gate
from toolgate.transports.mcp.listing import NAME
from toolgate.transports.mcp.quotas import QuotaReached, StreamQuota
from toolgate.transports.mcp.sdk_prompts import PromptHandlers
from toolgate.transports.mcp.sdk_requests import Requests, SdkContext, Who
from toolgate.transports.mcp.sdk_resources import ResourceHandlers
from toolgate.transports.mcp.sdk_tools import ToolHandlers
from toolgate.transports.stream_credentials import run_while_valid

INSTRUCTIONS = (
    "Tools of an application's backend. Every call is checked, limited and audited; "
    "a tool you do not see is not for you. Errors say what to change."
)

CACHEABLE: tuple[CacheableMethod, ...] = get_args(CacheableMethod)
Params = TypeVar("Params")
Result = TypeVar("Result")


class GateServer(Server[Any]):
    """The SDK's server; it also tells older clients that the list of tools can change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What a client that shakes hands is told."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


def build_server(
    gate: Gate,
    who: Who,
    *,
    transport: str,
    underscore_names: bool,
    streams: StreamQuota | None = None,
) -> Server[Any]:
    """A server whose every answer comes out of the gate; `streams` bounds open event streams."""
    requests = Requests(gate, who, transport)
    tools = ToolHandlers(requests, underscore_names=underscore_names)
    resources, prompts = ResourceHandlers(requests), PromptHandlers(requests)
    masked = ErrorMask(gate.failures, who)

    async def announce() -> None:
        await requests.bus.publish(ToolsListChanged())

    gate.catalogue.listeners.append(announce)
    server = GateServer(
        NAME,
        version=version("toolgate"),
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
        get_tool_input_schema=tools.mirrored_schema,
        on_list_tools=masked(tools.list_tools),
        on_call_tool=masked(tools.call_tool),
        on_list_resources=masked(resources.list_resources),
        on_list_resource_templates=masked(resources.list_templates),
        on_read_resource=masked(resources.read_resource),
        on_subscribe_resource=masked(resources.subscribe),
        on_unsubscribe_resource=masked(resources.subscribe),
        on_subscriptions_listen=_listening(requests, resources, streams),
        on_list_prompts=masked(prompts.list_prompts),
        on_get_prompt=masked(prompts.get_prompt),
        on_completion=masked(prompts.complete),
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, masked(set_level))
    server.middleware.append(requests.check)
    server.middleware.append(
        RequestStateBoundary(
            RequestStateSecurity(
                keys=[secrets.token_bytes(32)], bind_principal=lambda raw: who(raw).principal.id
            ),
            default_audience=NAME,
        )
    )
    return server


Listen = Callable[
    [SdkContext, types.SubscriptionsListenRequestParams], Awaitable[types.SubscriptionsListenResult]
]


def _listening(
    requests: Requests, resources: ResourceHandlers, streams: StreamQuota | None
) -> Listen:
    """Event streams: only about what the caller may read, as many as it may hold open."""
    listen = ListenHandler(requests.bus)

    async def listen_allowed(
        raw: SdkContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        allowed, caller = resources.allowed_subscriptions(raw, params), requests.who(raw)
        opened = streams.reserve(caller.principal.id) if streams else nullcontext()
        try:
            with opened:
                return await run_while_valid(caller.good, lambda: listen(raw, allowed))
        except QuotaReached as reached:
            raise MCPError(types.INVALID_REQUEST, str(reached)) from None
        except Unauthenticated as ended:
            raise MCPError(ended.rpc, ended.message) from None

    return listen_allowed


async def set_level(raw: SdkContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Older clients set a log level; we send no log messages of our own."""
    return types.EmptyResult()


@dataclass(frozen=True, slots=True)
class ErrorMask:
    """Keeps unexpected errors to ourselves: older clients would be sent their text."""

    failures: FailureLog
    who: Who

    def __call__(
        self, handler: Callable[[SdkContext, Params], Awaitable[Result]]
    ) -> Callable[[SdkContext, Params], Awaitable[Result]]:
        """The handler, whose errors are those of the protocol only."""

        @functools.wraps(handler)
        async def safe(raw: SdkContext, params: Params) -> Result:
            try:
                return await handler(raw, params)
            except MCPError:
                raise
            except Exception as error:
                self.failures.defect(self.who(raw).request_id, _name(handler), error)
                raise MCPError(types.INTERNAL_ERROR, "Internal error") from None

        return safe


def _name(handler: Callable[..., Any]) -> str:
    return f"MCP {getattr(handler, '__name__', 'request')}"
