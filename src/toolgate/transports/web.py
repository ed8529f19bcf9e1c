"""All HTTP transports behind one edge."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from toolgate.background import beside
from toolgate.gate.pipeline import Gate
from toolgate.identity.keys import Keys
from toolgate.settings import Settings
from toolgate.transports.asgi import (
    ASGIApp,
    Receive,
    Scope,
    Send,
    send_json,
)
from toolgate.transports.edge import Edge
from toolgate.transports.health import MetricsPage, Readiness, healthz
from toolgate.transports.http import PREFIX, ToolRoutes
from toolgate.transports.mcp.front import Front
from toolgate.transports.mcp.sdk import Sdk
from toolgate.transports.openapi import OpenApi
from toolgate.transports.routes import Routes
from toolgate.transports.rpc import Rpc

READ_ONLY_PATHS = {"/openapi.json", "/metrics", "/healthz", "/readyz"}
MCP_PATHS = ("/mcp", "/backend-manager/mcp")


@asynccontextmanager
async def web_app(
    gate: Gate, keys: Keys, settings: Settings, check: Callable[[], Awaitable[None]]
) -> AsyncGenerator[ASGIApp, None]:
    """The ASGI app, while its background work runs."""
    sdk = Sdk(gate, settings)
    front = Front(gate, sdk, underscore_names=settings.mcp.underscore_names)
    routes: dict[str, ASGIApp] = {
        **dict.fromkeys(MCP_PATHS, front),
        PREFIX: ToolRoutes(gate),
        "/rpc": Rpc(gate),
        "/openapi.json": OpenApi(gate),
        "/metrics": MetricsPage(gate.metrics),
        "/healthz": healthz,
        "/readyz": Readiness(check),
    }
    own = Routes(gate, gate.ports.content.project_id, settings.content.default_project)
    edge = Edge(
        _router(routes, own),
        gate,
        keys,
        allowed_hosts=settings.server.allowed_hosts,
        allowed_origins=settings.server.allowed_origins,
        dialect=own.dialect,
    )
    async with beside(sdk.run):
        yield edge


def _router(routes: dict[str, ASGIApp], own: Routes) -> ASGIApp:
    tools = routes[PREFIX]

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        found = tools if path.startswith(PREFIX + "/") else routes.get(path)
        if found is None and own.dialect(path):
            found = own
        if found is None:
            told = f"There is nothing at {path}. Try GET {PREFIX} or GET /openapi.json."
            return await send_json(send, 404, {"error": told})
        if path in READ_ONLY_PATHS and scope["method"] not in ("GET", "HEAD"):
            told = f"{scope['method']} is not possible here. Use GET."
            return await send_json(send, 405, {"error": told}, [(b"allow", b"GET, HEAD")])
        await found(scope, receive, send)

    return route
