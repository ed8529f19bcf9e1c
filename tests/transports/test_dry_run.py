"""A dry run is a dry run on every way in that has headers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gate.tools import a_tool, is_stored, offer, storing
from tests.servers import Server
from tests.transports.conftest import opened_web
from tests.transports.peers import call, piped

from toolgate.gate.tool import Effect, Route
from toolgate.testing import opened_kit
from toolgate.transports.mcp import stdio

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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("values", [("false", "true"), ("true", "false"), ("FALSE", "1")])
def test_of_two_headers_one_is_enough(server: Server, way: str, values: tuple[str, str]) -> None:
    path, headers, body = WAYS[way]
    both = [*headers.items(), *(("X-Dry-Run", value) for value in values)]
    with server.client() as client:
        told = client.post(path, headers=both, json=body)
        assert told.status_code == 200, told.text
        found: httpx2.Response = client.post(
            "/v1/tools/get_document", json={"collection": "apps", "document_id": "never-stored"}
        )
    assert found.status_code == 404


CHANGES = {
    "changes": [
        {
            "store": "documents",
            "path": "apps/never-stored",
            "before": None,
            "after": {"name": "Never"},
        }
    ],
    "omitted": 0,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_says_what_would_change(server: Server, way: str) -> None:
    path, headers, body = WAYS[way]
    with server.client() as client:
        told = client.post(path, headers=headers | {"X-Dry-Run": "true"}, json=body)
        if path == "/mcp":
            assert "x-dry-run-changes" not in told.headers
            found = told.json()["result"]["_meta"]["toolgate/dryRun"]
        else:
            found = json.loads(told.headers["x-dry-run-changes"])
            assert "changes" not in told.text
        assert found == CHANGES
        done = client.post(path, headers=headers | {"X-Dry-Run": "true"}, json=wrong(body))
        assert "changes" not in done.text + str(done.headers)


def wrong(body: Any) -> Any:
    """The same, of a collection that is not there."""
    return json.loads(json.dumps(body).replace('"apps"', '"nothing"'))


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("mcp")])
def test_a_message_can_ask_for_it_itself(server: Server, way: str) -> None:
    path, headers, body = WAYS[way]
    params = body["params"]
    asked = params | {"_meta": params.get("_meta", {}) | {"toolgate/dryRun": True}}
    with server.client() as client:
        told = client.post(path, headers=headers, json=body | {"params": asked})
    assert told.json()["result"]["_meta"]["toolgate/dryRun"] == CHANGES


def test_a_batch_tells_what_all_of_its_calls_would_change(server: Server) -> None:
    path, _, body = rpc()
    with server.client() as client:
        told = client.post(path, headers={"X-Dry-Run": "true"}, json=[body, body])
    found = json.loads(told.headers["x-dry-run-changes"])
    assert found == {"changes": CHANGES["changes"] * 2, "omitted": 0}


def test_a_header_holds_little_and_counts_the_rest(server: Server) -> None:
    path, _, body = http()
    long = body | {"data": {"name": "é" * 5000}}
    with server.client() as client:
        told = client.post(path, headers={"X-Dry-Run": "true"}, json=long)
    assert json.loads(told.headers["x-dry-run-changes"]) == {"changes": [], "omitted": 1}


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
            assert ("x-dry-run-changes" in told.headers) is not stored
        assert await is_stored(web.kit) is stored


@pytest.mark.anyio
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_on_stdio_a_message_asks_for_it_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    asked = call("create_document", NEW, era=era, meta={"toolgate/dryRun": True})
    async with opened_kit(tmp_path, writes=True) as kit:
        async with piped(kit.app.gate) as peer:
            await peer.open(era)
            short = await peer.ask(asked)
        monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
        async with piped(kit.app.gate) as peer:
            await peer.open(era)
            long = await peer.ask(asked)
        assert short["result"]["_meta"]["toolgate/dryRun"] == CHANGES
        assert short == long
        found = await kit.call("get_document", collection="apps", document_id="never-stored")
    assert found.status == 404
