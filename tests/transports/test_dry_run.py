"""A dry run is a dry run on every way in that has headers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gate.tools import a_tool, is_stored, offer, storing
from tests.servers import Server
from tests.transports.conftest import opened_web

from toolgate.gate.tool import Effect, Route

MODERN, LEGACY = "2026-07-28", "2025-11-25"
NEW = {"collection": "apps", "document_id": "never-stored", "data": {"name": "Never"}}


def http() -> tuple[str, dict[str, str], Any]:
    return "/v1/tools/create_document", {}, NEW


def rpc() -> tuple[str, dict[str, str], Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": "create_document", "params": NEW}
    return "/rpc", {}, request


def mcp(era: str, **further: Any) -> tuple[str, dict[str, str], Any]:
    params: dict[str, Any] = {"name": "create_document", "arguments": NEW}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": era}
    if era == MODERN:
        headers |= {"mcp-method": "tools/call", "mcp-name": "create_document"}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params | further}
    return "/mcp", headers, body


WAYS = {
    "http": http(),
    "rpc": rpc(),
    "mcp": mcp(MODERN),
    "mcp legacy": mcp(LEGACY),
    # An empty list of answers is for the SDK alone to read, so this goes the long way.
    "mcp through the SDK": mcp(MODERN, inputResponses={}),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_stored(server: Server, way: str) -> None:
    path, headers, body = WAYS[way]
    with server.client() as client:
        told = client.post(path, headers=headers | {"X-Dry-Run": "true"}, json=body)
        assert told.status_code == 200, told.text
        assert "never-stored" in told.text
        assert "error" not in told.text.lower().replace("iserror", "")
        found: httpx2.Response = client.post(
            "/v1/tools/get_document", json={"collection": "apps", "document_id": "never-stored"}
        )
    assert found.status_code == 404


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "yes", "on", "", "flase"])
def test_any_value_but_false_asks_for_it(server: Server, value: str) -> None:
    with server.client() as client:
        path, _, body = http()
        told = client.post(path, headers={"X-Dry-Run": value}, json=body)
        assert told.status_code == 200, told.text
        found = client.post(
            "/v1/tools/get_document", json={"collection": "apps", "document_id": "never-stored"}
        )
    assert found.status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize(("value", "stored"), [("true", False), ("False", True)])
async def test_the_route_of_a_tool_has_it_too(tmp_path: Path, value: str, stored: bool) -> None:
    tool = a_tool("put_it", storing(), pack="appdata", effect=Effect.WRITE)
    plugins = offer(replace(tool, route=Route("/put-it", "POST")))
    async with opened_web(tmp_path, plugins=plugins, appdata__writes=True) as web:
        async with web.client("admin") as client:
            told = await client.post("/put-it", json={}, headers={"X-Dry-Run": value})
            assert told.status_code == 200, told.text
        assert await is_stored(web.kit) is stored
