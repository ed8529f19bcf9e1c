"""Who waits for background work sees how far it is: the official client, both eras, both ways."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.patience import PATIENT
from tests.servers import Server

from toolgate.testing import opened_kit

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

KEY = "0123456789abcdef"
Mode = Literal["auto", "legacy"]
Told = tuple[float, float | None, str | None]


@asynccontextmanager
async def over_http(server: Server, mode: Mode) -> AsyncGenerator[mcp.Client]:
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(folder: Path, mode: Mode) -> AsyncGenerator[mcp.Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolgate", "mcp", "--data", str(folder)],
        env={
            "MCP_ENABLE_WRITES": "true",
            "TOOLGATE_PACKS__ENABLED": "backend",
            "TOOLGATE_ADMIN_KEY": KEY,
            "TOOLGATE_KEY": KEY,
        },
    )
    async with mcp.Client(stdio_client(server), mode=mode) as client:
        yield client


async def told_by(client: mcp.Client, tool: str, **arguments: Any) -> list[Told]:
    """The progress of a call that ends well."""
    told: list[Told] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    answer = await client.call_tool(tool, arguments, progress_callback=note)
    assert not answer.is_error, answer.content
    return told


async def check(client: mcp.Client) -> None:
    cron = await told_by(client, "run_cron", id="daily")
    assert cron
    assert cron[-1][0] == cron[-1][1], "all of its parts"
    assert all(message and message.startswith("daily/") for _, _, message in cron)
    assert [done for done, _, _ in cron] == sorted({done for done, _, _ in cron})
    unasked = await client.call_tool("run_cron", {"id": "reset-usage"})
    assert not unasked.is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http(server: Server, mode: Mode) -> None:
    async with over_http(server, mode) as client:
        await check(client)
        synced = await told_by(client, "sync_users")
        assert str(synced[-1][2]).endswith("users synchronised")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_stdio(tmp_path: Path, mode: Mode) -> None:
    async with opened_kit(tmp_path, packs__enabled=["backend"]):
        """Makes the database."""
    async with over_stdio(tmp_path, mode) as client:
        await check(client)
