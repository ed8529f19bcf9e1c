"""The MCP SDK's low-level server, with our gate behind every handler.

The only module that knows the SDK's server API (docs/decisions/0004).
"""

import functools
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar, get_args

import mcp_types as types
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from toolgate.gate.answers import Outcome
from toolgate.gate.errors import RateLimited, Unauthenticated, UnknownTool
from toolgate.gate.failures import FailureLog
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.policy import NO_RULE
from toolgate.gate.principal import Principal
from toolgate.transports.mcp.listing import (
    NAME,
    listed_tool,
    mirrors_headers,
    visible_prompts,
    visible_resources,
)
from toolgate.transports.mcp.quotas import QuotaReached, StreamQuota
from toolgate.transports.stream_credentials import Good, lasting

INSTRUCTIONS = (
    "Tools of an application's backend. Every call is checked, limited and audited; "
    "a tool you do not see is not for you. Errors say what to change."
)

CACHEABLE: tuple[CacheableMethod, ...] = get_args(CacheableMethod)
Raw = ServerRequestContext[Any]
Params = TypeVar("Params")
Result = TypeVar("Result")


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


class GateServer(Server[Any]):
    """The SDK's server; it also tells older clients whether the list of tools can change."""

    tools_change = False

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What a client that shakes hands is told."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=self.tools_change),
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
    handlers = Handlers(gate, who, transport, underscore_names)
    listen, masked = ListenHandler(handlers.bus), Masking(gate.failures, who)

    async def listen_allowed(
        raw: Raw, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        allowed, caller = handlers.allowed_subscriptions(raw, params), who(raw)
        opened = streams.one_more(caller.principal.id) if streams else nullcontext()
        try:
            with opened:
                return await lasting(caller.good, lambda: listen(raw, allowed))
        except QuotaReached as reached:
            raise MCPError(types.INVALID_REQUEST, str(reached)) from None
        except Unauthenticated as ended:
            raise MCPError(ended.rpc, ended.message) from None

    async def announce() -> None:
        await handlers.bus.publish(ToolsListChanged())

    gate.catalogue.listeners.append(announce)
    server = GateServer(
        NAME,
        version=version("toolgate"),
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
        get_tool_input_schema=handlers.mirrored_schema,
        on_list_tools=masked(handlers.list_tools),
        on_call_tool=masked(handlers.call_tool),
        on_list_resources=masked(handlers.list_resources),
        on_list_resource_templates=masked(handlers.list_templates),
        on_read_resource=masked(handlers.read_resource),
        on_subscribe_resource=masked(handlers.subscribe),
        on_unsubscribe_resource=masked(handlers.subscribe),
        on_subscriptions_listen=listen_allowed,
        on_list_prompts=masked(handlers.list_prompts),
        on_get_prompt=masked(handlers.get_prompt),
        on_completion=masked(handlers.complete),
    )
    server.tools_change = gate.catalogue.changing
    server.add_request_handler(
        "logging/setLevel", types.SetLevelRequestParams, masked(handlers.set_level)
    )
    server.middleware.append(handlers.only_known)
    server.middleware.append(
        RequestStateBoundary(
            RequestStateSecurity(
                keys=[secrets.token_bytes(32)], bind_principal=lambda raw: who(raw).principal.id
            ),
            default_audience=NAME,
        )
    )
    return server


@dataclass(frozen=True, slots=True)
class Masking:
    """Keeps unexpected errors to ourselves: older clients would be sent their text."""

    failures: FailureLog
    who: Who

    def __call__(
        self, handler: Callable[[Raw, Params], Awaitable[Result]]
    ) -> Callable[[Raw, Params], Awaitable[Result]]:
        """The handler, whose errors are those of the protocol only."""

        @functools.wraps(handler)
        async def safe(raw: Raw, params: Params) -> Result:
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


class Handlers:
    """One method for each MCP request."""

    def __init__(self, gate: Gate, who: Who, transport: str, underscore_names: bool) -> None:
        self._gate = gate
        self._who = who
        self._transport = transport
        self._underscores = underscore_names
        self.bus = InMemorySubscriptionBus()

    def mirrored_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool that wants arguments mirrored in headers; most want none."""
        tool = self._gate.catalogue.find(name)
        return tool.input_schema if tool and mirrors_headers(tool) else None

    async def list_tools(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools this caller may see, in the catalogue's order."""
        visible = self._gate.policy.visible(self._who(raw).principal, self._gate.catalogue)
        listed = [listed_tool(tool, self._underscores) for tool in visible]
        return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in listed])

    async def call_tool(
        self, raw: Raw, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """One call through the gate."""
        outcome = await self._execute(raw, params.name, params.arguments, params)
        if isinstance(outcome.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, outcome.error.message)
        if outcome.native is not None:
            return _given(outcome.native)
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.text)],
            structured_content=_structured(outcome),
            is_error=outcome.error is not None,
        )

    async def list_resources(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The addresses whose tools this caller may see."""
        visible = visible_resources(self._gate, self._who(raw).principal)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=one.uri,
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    mime_type=one.mime_type,
                )
                for one in visible
                if not one.template
            ]
        )

    async def list_templates(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The address patterns whose tools this caller may see."""
        visible = visible_resources(self._gate, self._who(raw).principal)
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=one.uri,
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    mime_type=one.mime_type,
                )
                for one in visible
                if one.template
            ]
        )

    async def read_resource(
        self, raw: Raw, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """What the tool behind an address answers."""
        for one in visible_resources(self._gate, self._who(raw).principal):
            if (arguments := one.arguments_for(params.uri)) is not None:
                outcome = await self._execute(raw, one.tool, arguments, params)
                break
        else:
            raise self._unknown(raw, params.uri, _no_resource(params.uri))
        if outcome.error:
            raise MCPError(types.INVALID_PARAMS, outcome.error.message, {"uri": params.uri})
        if outcome.native is not None:
            return _given(outcome.native)
        content = types.TextResourceContents(
            uri=params.uri, mime_type=one.mime_type, text=outcome.text
        )
        return types.ReadResourceResult(contents=[content])

    async def subscribe(
        self, raw: Raw, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Accept interest in an address the caller may read; what never changes is never sent."""
        if not self._may_read(raw, params.uri):
            raise self._unknown(raw, params.uri, _no_resource(params.uri))
        return types.EmptyResult()

    def allowed_subscriptions(
        self, raw: Raw, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenRequestParams:
        """The request without addresses the caller may not read."""
        wanted = params.notifications
        allowed = [uri for uri in wanted.resource_subscriptions or () if self._may_read(raw, uri)]
        narrowed = wanted.model_copy(update={"resource_subscriptions": allowed})
        return params.model_copy(update={"notifications": narrowed})

    async def list_prompts(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """The prompts, for every caller with credentials."""
        prompts = visible_prompts(self._gate, self._who(raw).principal)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    arguments=[
                        types.PromptArgument(
                            name=arg.name, description=arg.description, required=arg.required
                        )
                        for arg in one.arguments
                    ],
                )
                for one in prompts
            ]
        )

    async def get_prompt(
        self, raw: Raw, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """One prompt with its arguments filled in."""
        prompts = {one.name: one for one in visible_prompts(self._gate, self._who(raw).principal)}
        prompt = prompts.get(params.name)
        if prompt is None:
            error = MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
            raise self._unknown(raw, params.name, error)
        given = params.arguments or {}
        if missing := [
            arg.name for arg in prompt.arguments if arg.required and not given.get(arg.name)
        ]:
            raise MCPError(types.INVALID_PARAMS, f"{', '.join(missing)} is required")
        if prompt.native:
            return await prompt.native(raw, params)
        text = types.TextContent(text=prompt.render(given))
        return types.GetPromptResult(
            description=prompt.description,
            messages=[types.PromptMessage(role="user", content=text)],
        )

    async def complete(self, raw: Raw, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Values for a prompt's argument that begin with what was typed."""
        prompts = {one.name: one for one in visible_prompts(self._gate, self._who(raw).principal)}
        prompt = prompts.get(getattr(params.ref, "name", ""))
        arguments: Iterable[Any] = prompt.arguments if prompt else ()
        known = {arg.name: arg.values for arg in arguments}.get(params.argument.name, ())
        fitting = [one for one in known if one.lower().startswith(params.argument.value.lower())]
        return types.CompleteResult(
            completion=types.Completion(values=fitting[:100], total=len(fitting), has_more=False)
        )

    async def set_level(self, raw: Raw, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Older clients set a log level; we send no log messages of our own."""
        return types.EmptyResult()

    async def only_known(self, ctx: Raw, call_next: CallNext) -> HandlerResult:
        """Refuse methods that there are not."""
        try:
            return await call_next(ctx)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            raise self._unknown(ctx, ctx.method, error) from None

    def _unknown(self, raw: Raw, name: str, error: MCPError) -> MCPError:
        """What is answered to a request for what there is not: counted and audited like a call."""
        caller = self._who(raw)
        call = Call(
            tool=name,
            arguments=None,
            principal=caller.principal,
            request_id=caller.request_id,
            transport=self._transport,
        )
        refused = self._gate.refuse(call, UnknownTool(name), NO_RULE).error
        return MCPError(refused.rpc, refused.message) if isinstance(refused, RateLimited) else error

    def _may_read(self, raw: Raw, uri: str) -> bool:
        visible = visible_resources(self._gate, self._who(raw).principal)
        return any(one.arguments_for(uri) is not None for one in visible)

    async def _execute(self, raw: Raw, tool: str, arguments: Any, params: Any) -> Outcome:
        caller = self._who(raw)
        return await self._gate.execute(
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


def _given(native: Any) -> Any:
    """A handler's answer in the SDK's types; a protocol fault is raised."""
    if isinstance(native, MCPError):
        raise native
    return native


def _no_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def _structured(outcome: Outcome) -> Any:
    """The answer, where it fits the declared output schema, and older clients: a good object."""
    body: object = outcome.body
    return body if outcome.error is None and isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType]
