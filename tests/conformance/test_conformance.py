"""The public MCP conformance suite passes in both protocol eras."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.patience import PATIENT

from .node import NodeUnavailable
from .suite import REQUIREMENTS, run_suite

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "ready", "version": "1"},
    },
}


@pytest.fixture(scope="module", params=["httptools", "h11"])
def server_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Either parser of HTTP: the two hand headers on differently."""
    port = _free_port()
    command = [
        sys.executable, "-m", f"{__package__}.toolgate_server",
        "--port", str(port), "--data", str(tmp_path_factory.mktemp("conformance")),
        "--http", request.param,
    ]  # fmt: skip
    # The folder that holds this package, so that `-m` finds it under the name it was imported by.
    folder = Path(__file__).parents[len(str(__package__).split("."))]
    url = f"http://127.0.0.1:{port}/mcp"
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait_for(url, server)
            yield url
        finally:
            server.terminate()


@pytest.mark.parametrize(("requirements", "expected"), REQUIREMENTS.items())
def test_every_required_scenario_passes(server_url: str, requirements: str, expected: int) -> None:
    try:
        report = run_suite(server_url, requirements)
    except NodeUnavailable as reason:
        pytest.skip(f"MCP conformance {requirements}: {reason}")
    print(report)
    assert report.failed_names == (), str(report)
    assert (report.passed, report.total) == (expected, expected), report.raw_output[-4000:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Until the endpoint speaks MCP, not only until something listens."""
    deadline = time.monotonic() + PATIENT
    accepted = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(trust_env=False, timeout=PATIENT, headers=accepted) as client:
        while time.monotonic() < deadline:
            if server.poll() is not None:
                pytest.fail(f"the server under test ended with {server.returncode}")
            try:
                answer = client.post(url, json=INITIALIZE)
            except httpx2.TransportError:
                time.sleep(0.05)
            else:
                assert answer.status_code == 200, answer.text
                return
    pytest.fail(f"the server under test did not answer within {PATIENT:g} s")
