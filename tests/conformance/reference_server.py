"""The fixtures on the bare SDK: what the suite says about the SDK alone, with nothing of ours in between.

cd tests && python -m conformance.reference_server --port 8123 [--stateless]
"""

from __future__ import annotations

import argparse
import os
import warnings

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from starlette.applications import Starlette

from . import fixtures


def build() -> Server:
    bus = InMemorySubscriptionBus()
    tools = {tool.name: tool for tool in fixtures.tools(bus.publish)}
    subscriptions = fixtures.Subscriptions(set())

    async def list_tools(
        raw: fixtures.Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [
            types.Tool(name=t.name, description=t.description, input_schema=t.input_schema)
            for t in tools.values()
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        raw: fixtures.Raw, params: types.CallToolRequestParams
    ) -> fixtures.ToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await tool.handler(raw, params)

    async def list_resources(
        raw: fixtures.Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=list(fixtures.RESOURCES))

    async def list_templates(
        raw: fixtures.Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=list(fixtures.RESOURCE_TEMPLATES)
        )

    async def read_resource(
        raw: fixtures.Raw, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return fixtures.read_resource(params.uri)

    async def list_prompts(
        raw: fixtures.Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(fixtures.PROMPTS))

    def header_schema(name: str) -> dict[str, object] | None:
        tool = tools.get(name)
        mirrored = tool is not None and any(
            "x-mcp-header" in p for p in tool.input_schema["properties"].values()
        )
        return tool.input_schema if tool is not None and mirrored else None

    server: Server = Server(
        "conformance-reference",
        version="0.1.0",
        cache_hints={method: CacheHint(ttl_ms=0, scope="private") for method in CACHEABLE_METHODS},
        get_tool_input_schema=header_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscriptions.subscribe,
        on_unsubscribe_resource=subscriptions.unsubscribe,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=fixtures.get_prompt,
        on_completion=fixtures.complete,
    )
    server.add_request_handler(
        "logging/setLevel", types.SetLevelRequestParams, fixtures.set_logging_level
    )
    server.middleware.append(
        RequestStateBoundary(
            RequestStateSecurity(keys=[os.urandom(32)]), default_audience=server.name
        )
    )
    return server


def app(*, stateless: bool = False) -> Starlette:
    return build().streamable_http_app(
        host="127.0.0.1", json_response=False, stateless_http=stateless
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stateless", action="store_true", help="no sessions in the handshake era")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
    uvicorn.run(
        app(stateless=args.stateless), host="127.0.0.1", port=args.port, log_level="warning"
    )


if __name__ == "__main__":
    main()
