"""A dry run is a dry run on every way in that has headers."""

from typing import Any

import httpx2
import pytest
from tests.servers import Server

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
