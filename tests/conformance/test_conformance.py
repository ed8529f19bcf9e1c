"""The public MCP conformance suite passes in both protocol eras."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .node import NodeUnavailable
from .suite import REQUIREMENTS, run_suite

READY_WITHIN = 30.0


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", f"{__package__}.reference_server", "--port", str(port)]
    # The folder that holds this package, so that `-m` finds it under the name it was imported by.
    folder = Path(__file__).parents[len(str(__package__).split("."))]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait_for(port, server)
            yield f"http://127.0.0.1:{port}/mcp"
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


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"the server under test ended with {server.returncode} before it answered")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"the server under test did not answer within {READY_WITHIN:g} s")
