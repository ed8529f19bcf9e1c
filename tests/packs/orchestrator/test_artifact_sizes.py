"""Ten MiB on every transport, and not a byte more."""

import base64
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import jsonschema
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.types import BlobResourceContents, ResourceLink, TextContent
from tests.packs.orchestrator.calls import BUILD
from tests.patience import PATIENT
from tests.servers import ROOT, Server, running_server
from tests.transports.bridges import bridged
from tests.transports.test_parity import environment, stdio_client, toolgate

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

MOST = 10 * 1024 * 1024
WAYS = ["http", "rpc", "mcp 2026-07-28", "mcp 2025-11-25", "stdio", "bridge", "cli"]
Arguments = dict[str, Any]
PACKS = "orchestrator"


@dataclass(frozen=True, slots=True)
class Way:
    """How to put, and how to get: the bodies that came back."""

    put: Callable[[Arguments], Awaitable[Any]]
    get: Callable[[Arguments], Awaitable[tuple[Any, bytes]]]


def inlined(body: Any) -> tuple[Any, bytes]:
    """A result without its bytes, and these."""
    return body, base64.b64decode(body["result"].pop("content_bytes_base64"), validate=True)


def http_way(client: httpx2.AsyncClient) -> Way:
    async def put(given: Arguments) -> Any:
        return (await client.post("/v1/tools/artifact.put", json=given)).json()

    async def get(given: Arguments) -> tuple[Any, bytes]:
        return inlined((await client.post("/v1/tools/artifact.get", json=given)).json())

    return Way(put, get)


def rpc_way(client: httpx2.AsyncClient) -> Way:
    async def call(tool: str, given: Arguments) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": tool, "params": given}
        answer = (await client.post("/rpc", json=message)).json()
        return answer["result"] if "result" in answer else answer["error"]["data"]

    async def put(given: Arguments) -> Any:
        return await call("artifact.put", given)

    async def get(given: Arguments) -> tuple[Any, bytes]:
        return inlined(await call("artifact.get", given))

    return Way(put, get)


def mcp_way(client: mcp.Client) -> Way:
    async def put(given: Arguments) -> Any:
        content = (await client.call_tool("artifact.put", given)).content[0]
        assert isinstance(content, TextContent)
        return json.loads(content.text)

    async def get(given: Arguments) -> tuple[Any, bytes]:
        text, link = (await client.call_tool("artifact.get", given)).content
        assert isinstance(text, TextContent)
        assert isinstance(link, ResourceLink)
        read = (await client.read_resource(link.uri)).contents[0]
        assert isinstance(read, BlobResourceContents)
        return json.loads(text.text), base64.b64decode(read.blob, validate=True)

    return Way(put, get)


def cli_way(server: Server) -> Way:
    async def call(tool: str, given: Arguments, *more: str) -> bytes:
        command = [*toolgate(), "call", tool, "--json", "-", "--data", str(server.data), *more]
        done = await anyio.run_process(
            command,
            input=json.dumps(given).encode(),
            cwd=ROOT,
            env={**environment(), "TOOLGATE_PACKS__ENABLED": PACKS},
            check=False,
        )
        return done.stdout

    async def put(given: Arguments) -> Any:
        return json.loads(await call("artifact.put", given))

    async def get(given: Arguments) -> tuple[Any, bytes]:
        return inlined(json.loads(await call("artifact.get", given)))

    return Way(put, get)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_server(tmp_path_factory, packs__enabled=PACKS) as running:
        yield running


@pytest.fixture(scope="module")
async def ways(server: Server) -> AsyncIterator[dict[str, Way]]:
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(
            httpx2.AsyncClient(
                base_url=server.url,
                headers={"Authorization": f"Bearer {server.admin_key}"},
                trust_env=False,
                timeout=PATIENT,
            )
        )
        found = {"http": http_way(plain), "rpc": rpc_way(plain), "cli": cli_way(server)}
        for mode, version in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
            transport = streamable_http_client(f"{server.url}/mcp", http_client=plain)
            client = await stack.enter_async_context(mcp.Client(transport, mode=mode))  # type: ignore[arg-type]
            found[f"mcp {version}"] = mcp_way(client)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "tests.transports.test_parity.environment",
                lambda: {**environment(), "TOOLGATE_PACKS__ENABLED": PACKS},
            )
            piped = stdio_client(server, "admin")
        bridge = bridged(f"{server.url}/mcp", server.admin_key, "auto")
        found["bridge"] = mcp_way(await stack.enter_async_context(bridge))
        found["stdio"] = mcp_way(await stack.enter_async_context(piped))
        yield found


@pytest.mark.parametrize("way", WAYS)
async def test_ten_mib_go_in_and_come_out(ways: dict[str, Way], server: Server, way: str) -> None:
    data = os.urandom(MOST)
    given = {"task_id": BUILD, "path": f"{way}.bin"}
    put = await ways[way].put({**given, "content_bytes_base64": base64.b64encode(data).decode()})
    assert put["status"] == "success", put
    assert put["result"]["checksum_sha256"] == hashlib.sha256(data).hexdigest()
    got, read = await ways[way].get(given)
    assert got == put
    assert read == data
    with server.client() as client:
        listed = client.get("/v1/tools").json()["tools"]
    (schema,) = (one["outputSchema"] for one in listed if one["name"] == "artifact.put")
    jsonschema.validate(put, schema)


@pytest.mark.parametrize("way", WAYS)
async def test_one_byte_more_is_refused(ways: dict[str, Way], way: str) -> None:
    content = base64.b64encode(bytes(MOST + 1)).decode()
    told = await ways[way].put({"task_id": BUILD, "path": "more", "content_bytes_base64": content})
    assert told["error"] == {
        "type": "size_limit_exceeded",
        "message": f"content_bytes_base64 holds {MOST + 1} bytes; an artifact has at most {MOST}. "
        "Store less.",
    }


@pytest.mark.parametrize("path", ["/v1/tools/artifact.list", "/v1/tools/nothing", "/rpc", "/mcp"])
async def test_other_calls_are_not_larger_than_before(server: Server, path: str) -> None:
    arguments = {"task_id": BUILD, "prefix": "x" * 5_000_000}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "artifact.list"}
    match path:
        case "/rpc":
            body["params"] = arguments
        case "/mcp":
            body |= {
                "method": "tools/call",
                "params": {"name": "artifact.list", "arguments": arguments},
            }
        case _:
            body = arguments
    headers = {"Accept": "application/json, text/event-stream"}
    with server.client(**headers) as client:
        answer = client.post(path, json=body)
    if path.endswith("nothing"):
        assert answer.status_code == 404
    else:
        assert answer.status_code == 413
        assert "limits.body_bytes" in answer.text


async def test_who_sees_no_such_tool_may_send_no_such_request(server: Server) -> None:
    body = {"content_bytes_base64": "A" * 5_000_000}
    with server.client("user") as client:
        assert client.post("/v1/tools/artifact.put", json=body).status_code == 404
        told = client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "x", "params": body})
    assert told.status_code == 413


async def test_many_at_once_are_all_stored(server: Server) -> None:
    data = {f"many/{number}": os.urandom(5 * 1024 * 1024) for number in range(8)}
    async with httpx2.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.admin_key}"},
        trust_env=False,
        timeout=PATIENT,
    ) as client:
        way = http_way(client)

        async def round_trip(path: str) -> None:
            content = base64.b64encode(data[path]).decode()
            given = {"task_id": BUILD, "path": path}
            put = await way.put({**given, "content_bytes_base64": content})
            assert put["status"] == "success", put
            assert (await way.get(given))[1] == data[path]

        async with anyio.create_task_group() as tasks:
            for path in data:
                tasks.start_soon(round_trip, path)
