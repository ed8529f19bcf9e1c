"""MCP over HTTP, in process: toolgate with every check on, beside the bare SDK with none.

What is measured is CPU time of whole requests at the ASGI boundary, so that a busy machine
changes both sides alike. The bare SDK server has the same tool and neither keys, policy,
limits nor audit.
"""

import json
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

from toolgate import demo
from toolgate.app import opened
from toolgate.packs.appdata.schema import SUMMARIES
from toolgate.settings import load
from toolgate.transports.web import web_app

KEY = "bench-key-of-no-value"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
CALLS, ROUNDS = 400, 5

Ask = Callable[[], Awaitable[bytes]]


async def measure() -> list[tuple[str, float, float]]:
    """Rows of (what, ours µs, SDK's µs); the least of several interleaved rounds."""
    rows: list[tuple[str, float, float]] = []
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(_toolgate())
        bare = await stack.enter_async_context(_bare_sdk())
        for what, method, params in (
            ("tools/call", "tools/call", {"name": "list_collections", "arguments": {}}),
            ("tools/list", "tools/list", {}),
        ):
            for era in (MODERN, LEGACY):
                asks = [_ask(app, era, method, params) for app in (ours, bare)]
                for ask in asks:
                    assert b'"result":' in await ask(), await ask()
                rows.append((f"{what} {era}", *await _least(asks)))
    return rows


async def _least(asks: list[Ask]) -> list[float]:
    least = [float("inf")] * len(asks)
    for _ in range(ROUNDS):
        for number, ask in enumerate(asks):
            started = time.process_time()
            for _ in range(CALLS):
                await ask()
            spent = (time.process_time() - started) / CALLS * 1e6
            least[number] = min(least[number], spent)
    return least


def _ask(app: Any, era: str, method: str, params: dict[str, Any]) -> Ask:
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {KEY}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": era,
    }
    if era == MODERN:
        headers["mcp-method"] = method
        meta = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        }
        params = params | {"_meta": meta}
        if "name" in params:
            headers["mcp-name"] = params["name"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def ask() -> bytes:
        return await _exchange(app, raw, body)

    return ask


async def _exchange(app: Any, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[bytes] = []
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return pending.pop() if pending else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(sent)


@asynccontextmanager
async def _toolgate() -> AsyncGenerator[Any, None]:
    with tempfile.TemporaryDirectory() as folder:
        flags = {"data": Path(folder), "admin_key": KEY, "limits.calls_per_minute": 10_000_000}
        settings = load(flags=flags, environment={})
        async with opened(settings) as app:
            await demo.load(app)
            async with web_app(app.gate, app.credentials, settings, app.check) as web:
                yield web


@asynccontextmanager
async def _bare_sdk() -> AsyncGenerator[Any, None]:
    answer = SUMMARIES.model_dump(mode="json")

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = types.TextContent(text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer)

    async def listed(_: Any, params: Any) -> types.ListToolsResult:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        tool = types.Tool(name="list_collections", description="Lists.", input_schema=schema)
        return types.ListToolsResult(tools=[tool] * 7)

    server: Server[Any] = Server(
        "bare", on_call_tool=call, on_list_tools=listed, get_tool_input_schema=lambda _: None
    )
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        yield StreamableHTTPASGIApp(manager)
