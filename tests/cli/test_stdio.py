"""`toolgate mcp` with a real MCP client."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests import preloaded
from tests.patience import PATIENT

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("data")]
PUBLIC = {"list_collections", "describe_collection", "health_check"}
USERS = PUBLIC | {"get_user", "get_subscription"}


async def tools_seen(
    folder: Path, environment: dict[str, str], *arguments: str, **variables: str
) -> tuple[set[str], str]:
    """The tools a client lists, and what the server said on standard error."""
    command, *rest = preloaded.command("-m", "toolgate", "mcp", *arguments)
    server = StdioServerParameters(
        command=command,
        args=rest,
        env=environment | variables,
        cwd=folder,
    )
    with (folder / "stderr").open("w+") as said:
        async with (
            stdio_client(server, errlog=said) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            called = await session.call_tool("list_collections", {})
            assert not called.is_error
        said.seek(0)
        return {tool.name for tool in listed.tools}, said.read()


async def test_without_a_key_only_public_tools_are_there(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    names, said = await tools_seen(tmp_path, environment)
    assert names == PUBLIC
    assert "only public tools" in said
    assert "Traceback" not in said


@pytest.fixture
def keys(cli: Any) -> dict[str, str]:
    """A key for each role, by its name."""
    return {
        role: cli("keys", "create", "--role", role, "--json").json["key"]
        for role in ("admin", "user")
    }


async def test_a_key_brings_what_its_holder_may_see(
    tmp_path: Path, environment: dict[str, str], keys: dict[str, str]
) -> None:
    names, said = await tools_seen(tmp_path, environment, "--key", keys["admin"])
    assert names > PUBLIC
    assert said == ""
    own = {"TOOLGATE_ADMIN_KEY": "our-own-admin-key"}
    seen = await tools_seen(tmp_path, environment, "--token", keys["user"], **own)
    assert seen == (USERS, "")


async def test_a_key_may_stand_in_the_environment(
    tmp_path: Path, environment: dict[str, str], keys: dict[str, str]
) -> None:
    assert await tools_seen(tmp_path, environment, TOOLGATE_KEY=keys["user"]) == (USERS, "")


async def test_the_admin_key_of_the_environment_makes_an_admin(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    own = {"BACKEND_MANAGER_KEY": "our-own-admin-key"}
    names, said = await tools_seen(tmp_path, environment, **own)
    assert "get_document" in names
    assert said == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toolgate.toml", 'admin_key = "our-own-admin-key"'),
        (".env", "TOOLGATE_ADMIN_KEY=our-own-admin-key"),
    ],
)
async def test_an_admin_key_in_a_file_makes_nobody_admin(
    tmp_path: Path, environment: dict[str, str], cli: Any, name: str, text: str
) -> None:
    (tmp_path / "toolgate.toml").touch()
    (tmp_path / name).write_text(text)
    written = cli("connect", "claude-desktop", "--json").json
    entry = written["config"]["mcpServers"]["toolgate"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    names, said = await tools_seen(elsewhere, environment, *entry["args"][1:])
    assert (names, "only public tools" in said) == (PUBLIC, True)
    key = "our-own-admin-key"
    names, said = await tools_seen(elsewhere, environment, *entry["args"][1:], "--key", key)
    assert ("get_document" in names, said) == (True, "")


@pytest.mark.parametrize("option", ["--key", "--token"])
def test_a_bad_key_is_refused_before_anything_is_served(
    cli: Any, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("TOOLGATE_ADMIN_KEY", "our-own-admin-key")
    ended = cli("mcp", option, "tg_0000_1111")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("Error: This key is unknown, expired or revoked.")
    assert ended.err.count("\n") == 1


def test_a_signal_ends_it_with_everything_stored(
    tmp_path: Path, environment: dict[str, str], cli: Any
) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "mcp"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin
    assert server.stdout
    call = {"name": "list_collections", "arguments": {}}
    for number, method, params in ((1, "initialize", hello), (2, "tools/call", call)):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        assert "result" in json.loads(server.stdout.readline())
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=PATIENT)
    assert (server.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert len(cli("audit", "--json").out.splitlines()) == 1
