"""The official TypeScript client on standard input and output: of ours, and of the bridge."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.node import NodeUnavailable, find, install
from tests.servers import ROOT
from tests.transports.bridges import Backend, backend

SCRIPT = "ts_stdio.mjs"
FOLDER = Path(__file__).parent
VERSIONS = {"default": "2025-11-25", "auto": "2026-07-28"}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def home() -> Path:
    try:
        return install(FOLDER, SCRIPT)
    except NodeUnavailable as reason:
        pytest.skip(f"TypeScript client: {reason}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("bridged")) as started:
        yield started


def looked(home: Path, *command: str, **variables: str) -> dict[str, Any]:
    done = find().run(SCRIPT, sys.executable, *command, cwd=home, timeout=90, env=variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def bridged(home: Path, server: Backend) -> dict[str, Any]:
    return looked(home, "-m", "toolgate", "mcp", "--url", server.url, TOOLGATE_KEY=server.key)


@pytest.fixture(scope="module")
def direct(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    data = tmp_path_factory.mktemp("direct")
    program = ["-m", "tests.transports.stdio_server", str(data), "all"]
    return looked(home, *program, PYTHONPATH=str(ROOT)), data


def check(found: dict[str, Any], mode: str) -> None:
    assert "error" not in found, found
    assert found["version"] == VERSIONS[mode]
    assert {"get_document", "hold"} < set(found["tools"])
    assert found["jane"]["displayName"] == "Jane Doe"
    assert found["failure"]["isError"] is True
    assert "Document nobody not found in users" in found["failure"]["content"][0]["text"]
    assert "cybereco://schema/users" in found["resources"]
    assert '"users"' in found["read"]
    assert "ü ☃" in found["prompt"]
    # The SDK passes a report over that it reads together with the answer; the first it always has.
    assert found["progress"] in ([0], [0, 50], [0, 50, 100])
    assert found["many"] == ["Jane Doe"] * 20
    assert found["unknown"] == -32602
    assert found["held"] == "aborted"


@pytest.mark.parametrize("mode", VERSIONS)
def test_everything_passes_the_bridge(bridged: dict[str, Any], mode: str) -> None:
    check(bridged[mode], mode)


@pytest.mark.parametrize("mode", VERSIONS)
def test_everything_is_there_without_a_bridge(direct: Any, mode: str) -> None:
    check(direct[0][mode], mode)


@pytest.mark.usefixtures("bridged")
async def test_a_call_that_was_given_up_ends_on_the_server(server: Backend) -> None:
    await server.until("started", 2)
    await server.until("ended", 2)


def test_a_call_that_was_given_up_ends_without_a_bridge(direct: Any) -> None:
    noted = (direct[1] / "notes").read_text().split()
    assert noted == ["started", "ended"] * 2
