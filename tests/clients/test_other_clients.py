"""Clients that people use, over HTTP and on stdio: they list, call, and show a failure's words.

The official SDKs of 2.x have tests of their own beside this one.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import installing
from tests import preloaded
from tests.conformance.node import CACHE, NodeUnavailable, find, install
from tests.servers import ROOT, Server

from toolgate import packs
from toolgate.gate.catalogue import Catalogue

FOLDER = Path(__file__).parent
PYTHON_1 = FOLDER / "python_1"
SECONDS = 100
TOOLS = [tool.name for tool in Catalogue(packs.offers())]
WORDS = "Document nobody not found in users"
WAYS = ["http", "stdio"]
pytestmark = pytest.mark.timeout(400)
"""The first test of a clean checkout installs the clients."""

Command = tuple[list[str], dict[str, str]]


def ways(server: Server) -> dict[str, Command]:
    """What a client is pointed at, and the environment it needs for that."""
    program = preloaded.command("-m", "toolgate", "mcp", "--data", str(server.data))
    return {
        "http": ([f"{server.url}/mcp"], {"TOOLGATE_KEY": server.admin_key}),
        "stdio": (program, {"TOOLGATE_ADMIN_KEY": server.admin_key}),
    }


@pytest.fixture(scope="module")
def home() -> Path:
    try:
        return install(FOLDER / "others", "ts_sdk_1.mjs")
    except NodeUnavailable as reason:
        pytest.skip(f"npm clients: {reason}")


def python_with(find_python: Callable[[], str]) -> str:
    try:
        return find_python()
    except installing.Missing as reason:
        pytest.skip(f"Python client: {reason}")


def mcp_1() -> str:
    return installing.environment(CACHE.parent / "clients" / "mcp-1", PYTHON_1 / "requirements.txt")


def check(seen: dict[str, Any]) -> None:
    assert seen["tools"] == TOOLS
    good, failure = seen["good"], seen["failure"]
    assert good["isError"] is False
    assert good["structuredContent"]["displayName"] == "Jane Doe"
    assert failure.get("isError") is True, failure
    assert failure.get("structuredContent") is None
    assert json.loads(failure["content"][0]["text"]) == {"error": WORDS}


@pytest.mark.parametrize("way", WAYS)
def test_the_typescript_sdk_1(server: Server, home: Path, way: str) -> None:
    command, variables = ways(server)[way]
    done = find().run("ts_sdk_1.mjs", *command, cwd=home, timeout=SECONDS, env=variables)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    check(seen)
    assert "Unknown tool: no_such_tool" in seen["unknown"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("find_python", "script"),
    [(mcp_1, PYTHON_1 / "mcp_1.py"), (installing.fastmcp, FOLDER / "fastmcp_client.py")],
    ids=["mcp 1.x", "FastMCP"],
)
def test_a_python_client(
    server: Server, find_python: Callable[[], str], script: Path, way: str
) -> None:
    command, variables = ways(server)[way]
    done = subprocess.run(
        [python_with(find_python), str(script), *command],
        env={**os.environ, **variables, "FASTMCP_CHECK_FOR_UPDATES": "off"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout.splitlines()[-1]))


def test_mcp_remote(server: Server, home: Path, tmp_path: Path) -> None:
    """It stands between a client on stdio and a server on HTTP."""
    node, key = find(), server.admin_key
    proxy = [str(node.executable), "node_modules/mcp-remote/dist/proxy.js", f"{server.url}/mcp"]
    options = [
        "--allow-http",
        "--transport",
        "http-only",
        "--header",
        f"Authorization:Bearer {key}",
    ]
    done = node.run(
        "ts_sdk_1.mjs",
        *proxy,
        *options,
        cwd=home,
        timeout=SECONDS,
        env={"MCP_REMOTE_CONFIG_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout))


@pytest.mark.parametrize("way", WAYS)
def test_the_inspectors_command_line(server: Server, home: Path, way: str) -> None:
    command, variables = ways(server)[way]
    bearer = f"Authorization: Bearer {server.admin_key}"
    given = [
        *(part for item in variables.items() for part in ("-e", "=".join(item)) if way == "stdio"),
        *command,
        *(["--transport", "http", "--header", bearer] if way == "http" else []),
    ]

    def inspect(*method: str) -> Any:
        program = "node_modules/.bin/mcp-inspector"
        done = find().run(program, "--cli", *given, *method, cwd=home, timeout=SECONDS)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    get = [
        "--method",
        "tools/call",
        "--tool-name",
        "get_document",
        "--tool-arg",
        "collection=users",
    ]
    check(
        {
            "tools": [tool["name"] for tool in inspect("--method", "tools/list")["tools"]],
            "good": {"isError": False, **inspect(*get, "--tool-arg", "document_id=abc123")},
            "failure": inspect(*get, "--tool-arg", "document_id=nobody"),
        }
    )


@pytest.mark.parametrize("way", WAYS)
def test_claude_code_connects(server: Server, home: Path, tmp_path: Path, way: str) -> None:
    """As far as it goes without an account: it adds the server, connects, and says so."""
    program = home / "node_modules" / ".bin" / "claude"
    command, variables = ways(server)[way]
    adding = ["add", "--scope", "user", "gate"]
    if way == "http":
        header = f"Authorization: Bearer {server.admin_key}"
        adding = [*adding, "--transport", "http", *command, "--header", header]
    else:
        given = [part for item in variables.items() for part in ("--env", "=".join(item))]
        adding = [*adding, *given, "--", *command]

    def claude(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program), "mcp", *arguments],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    added = claude(*adding)
    if added.returncode in (126, 127):
        pytest.skip(f"Claude Code does not run here: {added.stderr.strip()}")
    assert added.returncode == 0, added.stderr
    listed = claude("list")
    assert "Connected" in listed.stdout, listed.stdout + listed.stderr
