"""Quick to start, light to run: nothing on import, nothing that is not configured."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.patience import PATIENT
from tests.servers import ROOT, running_server

CPU_SECONDS = 2.0
MEGABYTE = 1024 * 1024
MAX_MEGABYTES = 140

START = """
import json, resource, sys
import anyio

async def main():
    from toolgate.app import opened
    from toolgate.settings import read_settings
    from toolgate.transports.web import web_app
    settings = read_settings(flags={"data": sys.argv[1]}, environment={})
    async with opened(settings) as app:
        async with web_app(app.gate, app.credentials, settings, app.readiness(), app.outbound):
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(json.dumps({
                "cpu": used.ru_utime + used.ru_stime,
                "modules": sorted({name.partition(".")[0] for name in sys.modules}),
                "full": sorted(name for name in sys.modules if name.startswith("toolgate.")),
            }), flush=True)

anyio.run(main)
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

NOT_CONFIGURED = {
    "google": "Firestore",
    "grpc": "Firestore",
    "psycopg": "PostgreSQL",
    "asyncpg": "PostgreSQL",
    "redis": "counting in Redis",
    "coredis": "counting in Redis",
}
NOT_NEEDED = {
    "alembic": "the database is at the newest schema",
    "mako": "the database is at the newest schema",
    "mcp": "loaded beside the running server",
    "mcp_types": "loaded beside the running server",
    "starlette": "comes with the SDK",
    "httpx2": "nothing calls out",
    "rich": "nobody looks at a terminal",
    "typer": "there is no command line here",
    "click": "there is no command line here",
    "jsonschema": "arguments are checked by the models",
    "requests": "nothing calls out",
    "cryptography": "keys are hashed with the standard library",
    "opentelemetry": "comes with the SDK",
}


def started(folder: Path) -> dict[str, Any]:
    """Open the application until it is ready, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENT,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The first start, which makes the database."""
    folder = tmp_path_factory.mktemp("startup")
    return folder, started(folder)


@pytest.fixture(scope="module")
def again(first: tuple[Path, dict[str, Any]]) -> list[dict[str, Any]]:
    """Three more starts on the same data."""
    return [started(first[0]) for _ in range(3)]


def test_a_start_takes_little_cpu(
    again: list[dict[str, Any]], record_property: Callable[[str, object], None]
) -> None:
    least = min(one["cpu"] for one in again)
    record_property("cpu_seconds", least)
    assert least < CPU_SECONDS


@pytest.mark.parametrize("module", [*NOT_CONFIGURED, *NOT_NEEDED])
def test_a_start_does_not_load(again: list[dict[str, Any]], module: str) -> None:
    why = (NOT_CONFIGURED | NOT_NEEDED)[module]
    assert module not in again[0]["modules"], f"{module} is loaded, although {why}"


def test_the_first_start_loads_what_makes_the_database(
    first: tuple[Path, dict[str, Any]],
) -> None:
    assert "alembic" in first[1]["modules"]
    assert not NOT_CONFIGURED.keys() & set(first[1]["modules"])


def test_a_start_loads_the_embedded_adapters_only(again: list[dict[str, Any]]) -> None:
    adapters = {name for name in again[0]["full"] if name.startswith("toolgate.adapters.")}
    assert {name.split(".")[2] for name in adapters} == {"sql", "user_documents"}


@pytest.mark.parametrize("module", ["toolgate", "toolgate.gate", "toolgate.packs"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module}; print(len([m for m in sys.modules if m in ('sqlalchemy', 'mcp')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENT
    )
    assert done.stdout.strip() == "0"


def test_a_running_server_is_small(
    tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    with running_server(tmp_path_factory, sys.executable) as server:
        with server.client(Accept="application/json, text/event-stream") as client:
            # Answered by the SDK, so it is loaded now.
            assert client.post("/mcp", json=INITIALIZE).status_code == 200
        resident = psutil.Process(server.pid).memory_info().rss / MEGABYTE
    record_property("resident_megabytes", resident)
    assert resident < MAX_MEGABYTES
