"""One call, whichever way it comes in: the same payload, the same kind of audit row."""

import json
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests import preloaded
from tests.patience import PATIENT
from tests.servers import ROOT, Server, running_server

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Case:
    """A call and who makes it."""

    holder: str
    tool: str
    arguments: dict[str, Any]


CASES = {
    "success": Case("admin", "get_document", {"collection": "users", "document_id": "abc123"}),
    "tool error": Case("admin", "get_document", {"collection": "users", "document_id": "no"}),
    "tool error with more": Case("admin", "describe_collection", {"collection_name": "no"}),
    "invalid arguments": Case("admin", "query_collection", {"collection": "apps", "limit": 0}),
    "unknown tool": Case("admin", "no_such_tool", {"a": 1}),
    "write": Case("admin", "create_document", {"collection": "apps", "data": {"name": "Same"}}),
    "write that clashes": Case(
        "admin", "create_document", {"collection": "apps", "document_id": "hub", "data": {}}
    ),
    "public tool for a user": Case("user", "describe_collection", {"collection_name": "apps"}),
    "refused write for a user": Case(
        "user", "create_document", {"collection": "apps", "data": {"name": "Mine"}}
    ),
}
WAYS = ["http", "rpc", "mcp 2026-07-28", "mcp 2025-11-25", "stdio", "cli"]
KEPT = ["tool_name", "decision", "rule", "status", "error_type", "subject_type", "role_names"]
TRANSPORT = {"http": "http", "rpc": "rpc", "stdio": "stdio", "cli": "cli"}

Payload = dict[str, Any]
Call = Callable[[Case], Awaitable[Payload]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What came back, and what the audit says of it."""

    payload: Payload
    row: dict[str, Any]


def http_way(clients: dict[str, httpx2.AsyncClient]) -> Call:
    async def call(case: Case) -> Payload:
        answer = await clients[case.holder].post(f"/v1/tools/{case.tool}", json=case.arguments)
        return answer.json()

    return call


def rpc_way(clients: dict[str, httpx2.AsyncClient]) -> Call:
    async def call(case: Case) -> Payload:
        message = {"jsonrpc": "2.0", "id": 1, "method": case.tool, "params": case.arguments}
        answer = (await clients[case.holder].post("/rpc", json=message)).json()
        if "result" in answer:
            return answer["result"]
        error = answer["error"]  # of no pack, it is worded as JSON-RPC has it
        return error["data"] if "error" in error["data"] else {"error": error["message"]}

    return call


def mcp_way(clients: dict[str, mcp.Client]) -> Call:
    async def call(case: Case) -> Payload:
        try:
            result = await clients[case.holder].call_tool(case.tool, case.arguments)
        except MCPError as fault:
            return {"error": fault.error.message}
        payload = json.loads(result.content[0].text)  # type: ignore[union-attr]
        assert result.is_error is ("error" in payload)
        # A failure does not fit the output schema, so it is told in the text alone.
        assert result.structured_content == (None if result.is_error else payload)
        return payload

    return call


def cli_way(server: Server) -> Call:
    codes = {"success": 0, "failed": 1, "usage": 2, "refused": 3}

    async def call(case: Case) -> Payload:
        who = "user:abc123" if case.holder == "user" else "admin"
        command = ["call", case.tool, "--json", json.dumps(case.arguments), "--as", who]
        done = await anyio.run_process(
            [*toolgate(), *command, "--data", str(server.data)],
            cwd=ROOT,
            env=environment(),
            check=False,
        )
        payload = json.loads(done.stdout)
        if "error" not in payload:
            assert done.returncode == codes["success"]
        elif payload["error"].startswith("Unknown tool"):
            assert done.returncode in (codes["usage"], codes["refused"])
        else:
            assert done.returncode in (codes["failed"], codes["usage"])
        return payload

    return call


def toolgate() -> list[str]:
    return preloaded.command("-m", "toolgate")


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "MCP_ENABLE_WRITES": "true", "TOOLGATE_LIMITS__CALLS_PER_MINUTE": "0"}


def stdio_client(server: Server, holder: str) -> mcp.Client:
    """A client of a stdio process on the server's own data; the key is in its environment."""
    variable = "TOOLGATE_ADMIN_KEY" if holder == "admin" else "TOOLGATE_KEY"
    command, *arguments = toolgate()
    return mcp.Client(
        StdioServerParameters(
            command=command,
            args=[*arguments, "mcp", "--data", str(server.data)],
            env={**environment(), variable: server.key_of(holder)},
            cwd=str(ROOT),
        )
    )


@asynccontextmanager
async def ways(server: Server) -> AsyncGenerator[dict[str, Call], None]:
    """Every way in, for an admin and for a user."""
    holders = ("admin", "user")
    async with AsyncExitStack() as stack:
        plain: dict[str, httpx2.AsyncClient] = {}
        for holder in holders:
            client = httpx2.AsyncClient(
                base_url=server.url,
                headers={"Authorization": f"Bearer {server.key_of(holder)}"},
                trust_env=False,
                timeout=PATIENT,
            )
            plain[holder] = await stack.enter_async_context(client)
        eras: dict[str, dict[str, mcp.Client]] = {}
        for mode, version in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
            eras[version] = {}
            for holder in holders:
                transport = streamable_http_client(f"{server.url}/mcp", http_client=plain[holder])
                client = await stack.enter_async_context(mcp.Client(transport, mode=mode))  # type: ignore[arg-type]
                assert client.protocol_version == version
                eras[version][holder] = client
        piped = {
            holder: await stack.enter_async_context(stdio_client(server, holder))
            for holder in holders
        }
        yield {
            "http": http_way(plain),
            "rpc": rpc_way(plain),
            **{f"mcp {version}": mcp_way(clients) for version, clients in eras.items()},
            "stdio": mcp_way(piped),
            "cli": cli_way(server),
        }


@pytest.fixture(scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Seen]:
    """Every case on every way, one after the other, with the audit row each left."""
    payloads: dict[tuple[str, str], Payload] = {}
    with running_server(tmp_path_factory) as server:
        async with ways(server) as every:
            for name, case in CASES.items():
                for way, call in every.items():
                    payloads[way, name] = await call(case)
    # The server and both stdio processes have ended: all rows are stored.
    rows = audit_rows(server)
    found: dict[tuple[str, str], Seen] = {}
    for way in WAYS:
        transport = TRANSPORT.get(way, "mcp")
        mine = [row for row in rows if row["transport"] == transport]
        if transport == "mcp":
            # Both eras are in the audit as one transport, case by case in the order of `WAYS`.
            mine = mine[WAYS.index(way) - 2 :: 2]
        mine.sort(key=lambda row: row["created_at"])
        assert len(mine) == len(CASES), f"{way}: {len(mine)} rows"
        for name, row in zip(CASES, mine, strict=True):
            found[way, name] = Seen(payloads[way, name], row)
    return found


def audit_rows(server: Server) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(server.data / "toolgate.db")) as connection:
        connection.row_factory = sqlite3.Row
        every = "SELECT * FROM audit ORDER BY created_at, seq"
        return [dict(row) for row in connection.execute(every)]


def comparable(payload: Payload) -> Payload:
    """Without what is made anew each time."""
    return payload | ({"id": "made"} if payload.get("success") else {})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS[1:])
async def test_the_payload_is_the_same(
    seen: dict[tuple[str, str], Seen], way: str, name: str
) -> None:
    payload = seen[way, name].payload
    assert comparable(payload) == comparable(seen["http", name].payload)
    assert list(payload) == list(seen["http", name].payload), "in the same order"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
async def test_the_audit_row_is_of_the_same_kind(
    seen: dict[tuple[str, str], Seen], way: str, name: str
) -> None:
    row, expected = seen[way, name].row, seen["http", name].row
    assert row["transport"] == TRANSPORT.get(way, "mcp")
    assert {one: row[one] for one in KEPT} == {one: expected[one] for one in KEPT}
    assert row["tool_name"] == CASES[name].tool
    assert row["user_id"] == expected["user_id"]


@pytest.mark.parametrize(
    ("name", "decision", "rule", "status", "error_type"),
    [
        ("success", "allow", "admin-everything", "success", None),
        ("tool error", "allow", "admin-everything", "error", "not_found"),
        ("invalid arguments", "deny", "invalid-arguments", "error", "invalid_arguments"),
        ("unknown tool", "deny", "no-rule-permits", "error", "not_found"),
        ("write", "allow", "admin-everything", "success", None),
        ("write that clashes", "allow", "admin-everything", "error", "conflict"),
        ("public tool for a user", "allow", "public-tools", "success", None),
        ("refused write for a user", "deny", "no-rule-permits", "error", "not_found"),
    ],
)
async def test_the_audit_row_says_how_it_was_decided(
    seen: dict[tuple[str, str], Seen],
    name: str,
    decision: str,
    rule: str,
    status: str,
    error_type: str | None,
) -> None:
    row = seen["http", name].row
    assert (row["decision"], row["rule"]) == (decision, rule)
    assert (row["status"], row["error_type"]) == (status, error_type)
