"""All HTTP transports behind one edge."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from functools import partial

from toolgate.background import run_in_background
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.identity.credentials import Credentials
from toolgate.identity.guesses import Guesses
from toolgate.identity.oauth.consent import ToolCounts
from toolgate.identity.oauth.grant_list import end_former_key
from toolgate.identity.oauth.paths import MCP_PATHS
from toolgate.identity.oauth.server import ServerParts, endpoints
from toolgate.identity.providers import Provider
from toolgate.identity.upstreams import Upstreams, upstreams_of
from toolgate.outbound.client import Outbound
from toolgate.readiness import Readiness
from toolgate.sections import Settings
from toolgate.transports.address import Addresses
from toolgate.transports.asgi import (
    ASGIApp,
    Receive,
    Scope,
    Send,
    send_json,
)
from toolgate.transports.connection.heads import Heads
from toolgate.transports.edge import RPC, Edge
from toolgate.transports.health import MetricsPage, ReadinessPage, healthz
from toolgate.transports.http import PREFIX, ToolRoutes
from toolgate.transports.large_bodies import LargeBodies
from toolgate.transports.mcp.front import Front
from toolgate.transports.mcp.sdk import Sdk
from toolgate.transports.oauth import OAuthRoutes
from toolgate.transports.openapi import OpenApi
from toolgate.transports.pages import PackPages
from toolgate.transports.peers import Peers
from toolgate.transports.routes import Routes
from toolgate.transports.rpc import Rpc

SERVED_MCP_PATHS = (*MCP_PATHS, *(f"{path}/" for path in MCP_PATHS))
"""With a slash at the end too, as people write addresses; both are one resource."""
READ_ONLY_PATHS = {"/openapi.json", "/metrics", "/healthz", "/readyz"}
OPEN_PATHS = {"/healthz", "/readyz"}


@asynccontextmanager
async def web_app(
    gate: Gate,
    credentials: Credentials,
    settings: Settings,
    readiness: Readiness,
    outbound: Outbound,
    *,
    provider: Provider | None = None,
) -> AsyncGenerator[Edge, None]:
    """The ASGI app, while its background work runs; `provider` takes the settings' one's place."""
    await end_former_key(gate.database, credentials.keys.admin_mark)
    guesses = Guesses(gate.limits, credentials.origin)
    others = upstreams_of(settings, outbound, provider)
    parts = _parts(gate, credentials, guesses, settings, others)
    peers, cookie = Peers(settings.server), settings.oauth.cookie
    oauth = OAuthRoutes(gate, endpoints(parts), peers, cookie=cookie)
    sdk = Sdk(gate, credentials, settings)
    edge = _edge(gate, credentials, guesses, settings, readiness=readiness, oauth=oauth, sdk=sdk)
    async with run_in_background(sdk.run):
        yield edge


def _edge(
    gate: Gate,
    credentials: Credentials,
    guesses: Guesses,
    settings: Settings,
    *,
    readiness: Readiness,
    oauth: OAuthRoutes,
    sdk: Sdk,
) -> Edge:
    heads = Heads(credentials)
    front = Front(gate, sdk, heads, underscore_names=settings.mcp.underscore_names)
    routes: dict[str, ASGIApp] = {
        **dict.fromkeys(SERVED_MCP_PATHS, front),
        PREFIX: ToolRoutes(gate),
        RPC: Rpc(gate),
        "/openapi.json": OpenApi(gate),
        "/metrics": MetricsPage(gate.metrics),
        "/healthz": healthz,
        "/readyz": ReadinessPage(readiness),
    }
    own, pages = Routes(gate), PackPages(gate, Peers(settings.server))
    inner = LargeBodies(
        _router(routes, own, oauth, pages),
        gate,
        settings.data,
        tools=PREFIX + "/",
        any_tool={RPC, *SERVED_MCP_PATHS},
    )
    return Edge(
        inner,
        gate,
        credentials,
        guesses,
        heads,
        peer=Peers(settings.server),
        addresses=Addresses(settings.server),
        allowed_hosts=settings.server.allowed_hosts,
        allowed_origins=settings.server.allowed_origins,
        is_open=lambda path: (
            path in OPEN_PATHS or (path not in routes and (oauth.opens(path) or pages.opens(path)))
        ),
    )


def _parts(
    gate: Gate, credentials: Credentials, guesses: Guesses, settings: Settings, others: Upstreams
) -> ServerParts:
    return ServerParts(
        database=gate.database,
        credentials=credentials,
        guesses=guesses,
        access_seconds=settings.oauth.access_minutes * 60,
        refresh_seconds=settings.oauth.refresh_days * 86400,
        registration=settings.oauth.registration,
        count_tools=partial(_count_tools, gate),
        admin_key_client=settings.oauth.admin_key_client,
        provider=others.provider,
        documents=others.documents,
    )


def _count_tools(gate: Gate, principal: Principal) -> ToolCounts:
    """How many tools somebody may call now, by effect."""
    decide = gate.policy.decide
    return Counter(tool.effect.value for tool in gate.catalogue if decide(principal, tool).allowed)


def _router(
    routes: dict[str, ASGIApp], own: Routes, oauth: OAuthRoutes, pages: PackPages
) -> ASGIApp:
    tools = routes[PREFIX]

    def route(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path: str = scope["path"]
        found = routes.get(path)
        if found is None and oauth.opens(path):
            return oauth(scope, receive, send)
        if found is None and pages.opens(path):
            return pages(scope, receive, send)
        if path.startswith(PREFIX + "/"):
            found = tools
        if found is None:
            found = own
        if path in READ_ONLY_PATHS and scope["method"] not in ("GET", "HEAD"):
            message = f"{scope['method']} is not possible here. Use GET."
            return send_json(send, 405, {"error": message}, [(b"allow", b"GET, HEAD")])
        return found(scope, receive, send)

    return route
