"""The official TypeScript client on standard input and output, through the bridge to a server."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.node import NodeUnavailable, find, install
from tests.transports.bridges import Backend, backend

SCRIPT = "ts_bridge.mjs"
FOLDER = Path(__file__).parent
VERSIONS = {"default": "2025-11-25", "auto": "2026-07-28"}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("bridged")) as started:
        yield started


@pytest.fixture(scope="module")
def seen(server: Backend) -> dict[str, Any]:
    try:
        home = install(FOLDER, SCRIPT)
    except NodeUnavailable as reason:
        pytest.skip(f"TypeScript client: {reason}")
    key = {"TOOLGATE_KEY": server.key}
    done = find().run(SCRIPT, sys.executable, server.url, cwd=home, timeout=90, env=key)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", VERSIONS)
def test_everything_passes(seen: dict[str, Any], mode: str) -> None:
    found = seen[mode]
    assert "error" not in found, found
    assert found["version"] == VERSIONS[mode]
    assert {"get_document", "hold"} < set(found["tools"])
    assert found["jane"]["displayName"] == "Jane Doe"
    assert "cybereco://schema/users" in found["resources"]
    assert '"users"' in found["read"]
    assert "ü ☃" in found["prompt"]
    assert found["progress"] == [0, 50, 100]
    assert found["many"] == ["Jane Doe"] * 20
    assert found["unknown"] == -32602


async def test_a_call_that_was_given_up_ends_on_the_server(
    seen: dict[str, Any], server: Backend
) -> None:
    assert [seen[mode]["held"] for mode in VERSIONS] == ["aborted", "aborted"]
    await server.until("started", 2)
    await server.until("ended", 2)
