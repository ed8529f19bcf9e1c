"""The public conformance suite's leg for authorization servers passes, with a person in it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.identity.oauth.flow import PREFIX, hidden
from tests.patience import PATIENT
from tests.servers import Server

from . import node

ENTRY = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
SCENARIOS = {"authorization-server-metadata-endpoint", "authorization-code-grant"}
SECONDS = 90


def test_every_scenario_for_authorization_servers_passes(server: Server, tmp_path: Path) -> None:
    try:
        home = node.install(Path(__file__).parent)
        executable = node.find().executable
    except node.NodeUnavailable as reason:
        pytest.skip(f"MCP conformance, authorization: {reason}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with server.client(None) as http:
        told = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
        client_id = http.post(f"{PREFIX}/register", json=told).json()["client_id"]
    command = [
        str(executable), str(home / ENTRY), "authorization", "--url", server.url,
        "--client-id", client_id, "--resource", f"{server.url}/mcp",
        "--port", str(port), "--output-dir", str(tmp_path),
    ]  # fmt: skip
    with subprocess.Popen(
        command,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    ) as suite:
        assert suite.stdout is not None
        said: list[str] = []
        for line in suite.stdout:
            said.append(line)
            if "/authorize?" in line:
                break
        visit(line.strip(), server.admin_key)
        rest, _ = suite.communicate(timeout=SECONDS)
    output = "".join(said) + rest
    assert suite.returncode == 0, output
    checks = [check for path in tmp_path.rglob("checks.json") for check in read(path)]
    assert len(list(tmp_path.rglob("checks.json"))) == len(SCENARIOS), output
    assert checks, output
    problems = {one["id"] for one in checks if one["status"] in ("FAILURE", "WARNING")}
    assert problems == set(), output


def visit(url: str, key: str) -> None:
    """What a person does at the address that the suite prints."""
    with httpx2.Client(trust_env=False, follow_redirects=True, timeout=PATIENT) as browser:
        page = browser.get(url)
        form = {**hidden(page), "key": key}
        page = browser.post(page.url.join(f"{PREFIX}/sign-in"), data=form)
        form = {**hidden(page), "decision": "allow"}
        assert browser.post(page.url.join(f"{PREFIX}/consent"), data=form).status_code == 200


def read(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())
