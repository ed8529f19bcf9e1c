"""`toolgate serve` as a person, a pipe and a supervisor meet it."""

import os
import pty
import re
import shlex
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.patience import PATIENT
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolgate import packs
from toolgate.stop_signals import StopSignals


def audit_count(folder: Path) -> tuple[int, int]:
    """How many rows of calls there are, and how many of an operator: the first key is one."""
    with sqlite3.connect(folder / ".toolgate/toolgate.db") as database:
        by_operator = "SELECT subject_type = 'operator', count(*) FROM audit GROUP BY 1"
        found = dict(database.execute(by_operator).fetchall())
    return found.get(0, 0), found.get(1, 0)


@pytest.mark.parametrize("demo", [(), ("--demo",)], ids=["empty", "demo"])
@pytest.mark.parametrize("enabled", packs.SHIPPED)
def test_the_call_that_is_shown_succeeds_with_every_pack(
    served: Any, enabled: str, demo: tuple[str, ...]
) -> None:
    with served(*demo, TOOLGATE_PACKS__ENABLED=f'["{enabled}"]') as server:
        (command,) = re.findall(r"^  curl (.+)$", server.greeting, re.MULTILINE)
        url, *rest = shlex.split(command)
        # A pack whose every read needs an argument shows the list of its tools instead.
        method, body = ("POST", rest[rest.index("-d") + 1]) if "-d" in rest else ("GET", None)
        headers = {"Authorization": f"Bearer {server.key}"}
        answer = httpx2.request(method, url, content=body, headers=headers, trust_env=False)
    assert answer.status_code == 200, (url, answer.text)


def test_the_first_start_shows_a_key_that_works_and_the_second_shows_none(
    served: Any, tmp_path: Path
) -> None:
    with served("--demo") as first:
        assert first.key
        assert f"{first.url}/mcp" in first.greeting
        assert first.key not in first.greeting
        assert stat.S_IMODE((tmp_path / ".toolgate/admin-key").stat().st_mode) == 0o600
        status, jane = first.call("get_document", collection="users", document_id="abc123")
        assert (status, jane["displayName"]) == (200, "Jane Doe")
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: first.call("list_collections"), range(40)))
        assert {status for status, _ in answers} == {200}
        ended = first.stop(signal.SIGTERM)
    assert (ended.code, ended.err) == (0, "")
    assert audit_count(tmp_path) == (41, 1)

    with served("--demo") as second:
        assert second.key is None
        assert "$TOOLGATE_KEY" in second.greeting
        assert second.call("list_collections", key=first.key)[0] == 200
        ended = second.stop(signal.SIGINT)
    assert (ended.code, ended.err) == (0, "")
    assert audit_count(tmp_path) == (42, 1)


def test_a_terminal_is_shown_the_first_key_once_and_no_file_holds_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ours, theirs = pty.openpty()
    server = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "serve", "--port", "0"],
        cwd=tmp_path,
        env=environment,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while b"claude mcp add" not in said:
            said += os.read(ours, 65536)
        assert len(re.findall(rb"tg_[0-9a-f]{16}_[0-9a-f]{64}", said)) == 1
        assert not (tmp_path / ".toolgate/admin-key").exists()
    finally:
        server.kill()  # how a server stops is tested elsewhere
        server.wait(PATIENT)
        os.close(ours)


def test_a_first_key_that_cannot_be_written_is_not_lost(
    process: Any, served: Any, tmp_path: Path
) -> None:
    in_the_way = tmp_path / ".toolgate/admin-key.new"
    in_the_way.mkdir(parents=True)
    tmp_path.joinpath(".toolgate").chmod(0o700)
    ended = process("serve", "--port", "0")
    assert ended.code == 2
    assert "admin-key.new" in ended.err
    in_the_way.rmdir()
    with served() as running:
        assert running.key
        assert running.call("list_collections")[0] == 200


def test_no_key_is_made_before_the_certificate(process: Any, served: Any, tmp_path: Path) -> None:
    in_the_way = tmp_path / ".toolgate/tls"
    in_the_way.parent.mkdir(mode=0o700)
    in_the_way.touch()
    ended = process("serve", "--port", "0", "--https")
    assert ended.code == 2
    in_the_way.unlink()
    with served() as running:
        assert running.key


def test_several_workers_share_everything_and_store_all_of_it(served: Any, tmp_path: Path) -> None:
    with served("--workers", "2") as running:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: running.call("list_collections"), range(20)))
        assert {status for status, _ in answers} == {200}
        ended = running.stop(signal.SIGTERM)
    assert (ended.code, ended.err) == (0, "")
    assert audit_count(tmp_path) == (20, 1)


def test_a_taken_port_is_named_with_the_way_out(process: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = process("serve", "--port", str(taken.getsockname()[1]))
    assert ended.code == 2
    assert "address already in use" in ended.err
    assert "--port" in ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("\n") == 1


def test_an_admin_key_from_the_environment_is_used_and_none_is_made(served: Any) -> None:
    key = "an-admin-key-of-our-own"
    with served(TOOLGATE_ADMIN_KEY=key) as running:
        assert running.key is None
        assert not running.url.endswith(":0")
        assert "list_collections" in running.greeting
        assert running.call("list_collections", key=key)[0] == 200
        assert running.call("list_collections", key="another-key-that-is-bad")[0] == 401


def test_a_short_admin_key_is_refused_at_start(process: Any) -> None:
    for variable in ("TOOLGATE_ADMIN_KEY", "BACKEND_MANAGER_KEY"):
        ended = process("serve", "--port", "0", **{variable: "fifteen-letters"})
        assert ended.code == 2
        assert "Setting admin_key must be a text of 16 characters or more. " in ended.err
        assert "`openssl rand -hex 32` makes one." in ended.err
        assert "fifteen" not in ended.err
        assert "Traceback" not in ended.err


def test_a_server_that_would_not_limit_connections_neither_greets_nor_makes_a_key(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*_: Any) -> None:
        """What a method does that uvicorn calls no more."""

    monkeypatch.setattr(HttpToolsProtocol, "on_headers_complete", nothing)
    monkeypatch.setattr(H11Protocol, "data_received", nothing)
    monkeypatch.setattr(StopSignals, "install", nothing)  # this process keeps its own handlers
    ended = cli("serve", "--port", "0")
    assert (ended.code, ended.out) == (1, "")
    assert "toolgate cannot serve with uvicorn" in ended.err
    assert not (tmp_path / ".toolgate").exists()


def test_a_read_only_server_refuses_writes(served: Any) -> None:
    with served("--read-only", MCP_ENABLE_WRITES="true") as running:
        assert "read-only" in running.greeting
        status, body = running.call("create_document", collection="users", data={"a": 1})
    assert status == 403
    assert "read-only" in body["error"]


@pytest.mark.usefixtures("data")
def test_documents_of_others_are_left_alone_by_the_demo(
    cli: Any, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_ENABLE_WRITES", "true")
    made = cli("call", "create_document", "collection=users", 'data={"a": 1}')
    assert made.code == 0
    with served("--demo") as running:
        assert running.call("get_document", collection="users", document_id="abc123")[0] == 404
        ended = running.stop()
    assert ended.code == 0
    assert "no demo data was loaded" in ended.err


def test_a_key_is_made_used_and_revoked(cli: Any, process: Any, served: Any) -> None:
    with served("--demo") as running:
        made = process("keys", "create", "--role", "user", "--user", "u1", "--json").json
        assert set(made) == {"id", "key", "role", "user_id"}
        assert made["role"] == "user"
        assert running.call("list_collections", key=made["key"])[0] == 200
        assert running.call("get_document", key=made["key"])[0] == 404
        assert cli("keys", "revoke", made["id"]).code == 0
        # A good key is remembered for a second at most.
        deadline = time.monotonic() + PATIENT
        while running.call("list_collections", key=made["key"])[0] != 401:
            assert time.monotonic() < deadline
