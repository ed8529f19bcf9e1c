"""MCP on standard input and output, with the same gate, policy and audit as over HTTP."""

import mcp_types as types
from mcp.server.stdio import stdio_server

from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.mcp.server import Caller, Raw, build_server


async def serve_stdio(gate: Gate, principal: Principal, *, underscore_names: bool) -> None:
    """Answer one client until it closes its end."""
    ids = Ids()

    def who(_: Raw) -> Caller:
        return Caller(principal, ids.new())

    async def remember(raw: Raw, _: types.NotificationParams) -> None:
        """An older client is told of changes without asking for it."""
        gate.catalogue.listeners.append(raw.session.send_tool_list_changed)

    server = build_server(gate, who, transport="stdio", underscore_names=underscore_names)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, remember)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
