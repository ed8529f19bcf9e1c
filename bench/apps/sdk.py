"""The MCP SDK's low-level server with an echo and toolgate's list: no keys, rules, limits, audit.

python -m bench.apps.sdk TOOLS.json PORT      over HTTP, stateless, answers as JSON
python -m bench.apps.sdk TOOLS.json           on standard input and output
"""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

from bench.apps.serving import serve


def built(file: Path) -> Server[Any]:
    """What is the same for every call is made once."""
    tools = [types.Tool.model_validate(one) for one in json.loads(file.read_text())]
    schemas = {tool.name: tool.input_schema for tool in tools}
    everything = types.ListToolsResult(tools=tools)

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = {"text": (params.arguments or {})["text"]}
        text = types.TextContent(text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer)

    async def listed(_: Any, params: Any) -> types.ListToolsResult:
        return everything

    return Server(
        "bare", on_call_tool=call, on_list_tools=listed, get_tool_input_schema=schemas.get
    )


def over_http(server: Server[Any], port: int) -> None:
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    inner = StreamableHTTPASGIApp(manager)

    @asynccontextmanager
    async def running() -> AsyncGenerator[None, None]:
        async with manager.run():
            yield

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            return await inner(scope, receive, send)
        await receive()
        async with running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    serve(app, port)


async def over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    made = built(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        over_http(made, int(sys.argv[2]))
    else:
        anyio.run(over_stdio, made)
