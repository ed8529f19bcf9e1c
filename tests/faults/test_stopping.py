"""How a server stops: no new connections, running calls end or are told, no process stays."""

import json
import signal
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults.server import KEY, Answer, Running, ask, kept_in, served, until
from tests.patience import PATIENT
from tests.transports.mcp_requests import LEGACY, MODERN, tool_call

TOOLS = '''
import asyncio
from pathlib import Path

from pydantic import Field

from toolgate.extend import HandlerContext, Input, Output, tool


class Named(Input):
    name: str = Field(description="Which call it is.")


class Done(Output):
    done: bool


@tool(role="user", annotations={"readOnlyHint": True})
async def wait_for_file(ctx: HandlerContext, args: Named) -> Done:
    """Wait until a file is there."""
    Path(f"begun-{args.name}").touch()
    while not Path("go-on").exists():
        await asyncio.sleep(0.01)
    return Done(done=True)


tools = [wait_for_file]
'''
WAITING = """
from toolgate.transports.connection import limited

limited.STOP_SECONDS = 600.0
"""
"""Runs in every worker: what is on its way when the server stops may take its time."""
STOPPING = "The server is stopping and could not finish this. Try again."
TOOL = "wait_for_file"

Asking = Callable[[Running, str], Answer]


def over_http(running: Running, name: str) -> Answer:
    return running.call(TOOL, name, name=name)


def over_rpc(running: Running, name: str) -> Answer:
    asked = {"jsonrpc": "2.0", "id": 1, "method": TOOL, "params": {"name": name}}
    return running.ask("POST", "/rpc", asked, **{"X-Request-Id": name})


def over_mcp(running: Running, name: str, era: str = MODERN, *, twice: bool = False) -> Answer:
    with closing(running.connection()) as connection:
        if twice:  # the second request with a head that is known
            listed = tool_call(era, "list_collections", {}).having(mcp_name=None)
            for _ in range(2):
                ask(connection, "POST", "/mcp", listed.body, **listed.headers)
        asked = tool_call(era, TOOL, {"name": name})
        headers = asked.headers if twice else {**asked.headers, "X-Request-Id": name}
        return ask(connection, "POST", "/mcp", asked.body, **headers)


WAYS: dict[str, Asking] = {
    "http": over_http,
    "rpc": over_rpc,
    "mcp": over_mcp,
    "older-mcp": lambda running, name: over_mcp(running, name, LEGACY),
    "known-head": lambda running, name: over_mcp(running, name, LEGACY, twice=True),
}


def started(data: Path, workers: int, drain_seconds: str, tools: str = TOOLS) -> Any:
    data.mkdir()
    (data / "tools.py").write_text(tools)
    settings = {
        "server__workers": str(workers),
        "server__drain_seconds": drain_seconds,
        "extend__tools": "tools.py",
    }
    return served(data, **settings)


def begin(pool: ThreadPoolExecutor, running: Running, data: Path) -> dict[str, Future[Answer]]:
    """One call each way, all of them waiting in their handler."""
    asked = {name: pool.submit(way, running, name) for name, way in WAYS.items()}
    until(lambda: all((data / f"begun-{name}").exists() for name in WAYS), PATIENT)
    return asked


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENT).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_new_connections_are_refused_while_running_calls_end(tmp_path: Path, workers: int) -> None:
    data = tmp_path / "data"
    with started(data, workers, "600") as running, ThreadPoolExecutor(len(WAYS)) as pool:
        asked = begin(pool, running, data)
        running.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(running.port), PATIENT)
        assert not any(one.done() for one in asked.values())
        (data / "go-on").touch()
        answers = {name: one.result() for name, one in asked.items()}
        assert running.process.wait(PATIENT) == 0
    assert {answer.status for answer in answers.values()} == {200}
    assert answers["http"].body == {"done": True}
    assert len(kept_in(data).requests(TOOL)) == len(WAYS)
    assert running.said == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_over_the_drain_time_is_told_in_the_words_of_its_transport(
    tmp_path: Path, workers: int
) -> None:
    data = tmp_path / "data"
    with started(data, workers, "0.2") as running, ThreadPoolExecutor(len(WAYS)) as pool:
        asked = begin(pool, running, data)
        running.process.send_signal(signal.SIGTERM)
        answers = {name: one.result() for name, one in asked.items()}
        assert running.process.wait(PATIENT) == 0
    assert (answers["http"].status, answers["http"].body) == (503, {"error": STOPPING})
    failure = answers["rpc"].body["error"]
    assert (failure["code"], failure["message"]) == (-32500, STOPPING)
    for name in ("mcp", "older-mcp", "known-head"):
        result = result_of(answers[name])
        assert (answers[name].status, result["isError"]) == (200, True)
        assert STOPPING in result["content"][0]["text"]
    rows = [row for row in kept_in(data).rows if row["tool_name"] == TOOL]
    assert {row["error_type"] for row in rows} == {"unavailable"}
    assert len(rows) == len(WAYS)
    assert "Traceback" not in "".join(running.said)


def test_every_call_of_a_batch_over_the_drain_time_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    batch = [
        {"jsonrpc": "2.0", "id": name, "method": TOOL, "params": {"name": name}}
        for name in ("first", "second")
    ]
    with started(data, 1, "0.2") as running, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.ask, "POST", "/rpc", batch)
        until(lambda: (data / "begun-first").exists(), PATIENT)
        running.process.send_signal(signal.SIGTERM)
        answers = asked.result().body
        assert running.process.wait(PATIENT) == 0
    assert [one["id"] for one in answers] == ["first", "second"]
    assert {one["error"]["message"] for one in answers} == {STOPPING}
    assert {row["error_type"] for row in kept_in(data).rows} == {"unavailable"}


HALF = (
    f"POST /v1/tools/list_collections HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    f"authorization: Bearer {KEY}\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n"
).encode()


def test_a_request_whose_body_does_not_end_is_told(tmp_path: Path) -> None:
    with (
        started(tmp_path / "data", 1, "0.2") as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=PATIENT) as client,
    ):
        client.sendall(HALF)
        with client.makefile("rb") as said:
            assert said.readline() == b"HTTP/1.1 100 Continue\r\n"  # it waits for the body
            said.readline()
            client.sendall(b"{")
            running.process.send_signal(signal.SIGTERM)
            head, _, body = said.read().partition(b"\r\n\r\n")
        assert running.process.wait(PATIENT) == 0
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"connection: close" in head
    assert json.loads(body) == {"error": "The server is stopping. Try again."}
    assert running.said == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_on_an_idle_connection_is_answered_after_the_signal(
    tmp_path: Path, workers: int
) -> None:
    data = tmp_path / "data"
    with started(data, workers, "600", TOOLS + WAITING) as running, ExitStack() as opened:
        idle = [opened.enter_context(closing(running.connection())) for _ in range(8)]
        for connection in idle:
            assert ask(connection, "POST", "/v1/tools/list_collections").status == 200
        running.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(running.port), PATIENT)
        for connection in idle:
            connection.auto_open = 0  # the same connection, or none
            asked = {"Authorization": f"Bearer {KEY}"}
            connection.request("POST", "/v1/tools/list_collections", headers=asked)
            answer = connection.getresponse()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            answer.read()
        assert running.process.wait(PATIENT) == 0
    assert len(kept_in(data).requests("list_collections")) == 2 * len(idle)
    assert running.said == []


def test_connections_that_stay_idle_do_not_hold_a_server_up(tmp_path: Path) -> None:
    with (
        started(tmp_path / "data", 1, "600") as running,
        closing(running.connection()) as used,
        socket.create_connection(("127.0.0.1", running.port), timeout=PATIENT) as unused,
    ):
        assert ask(used, "GET", "/healthz").status == 200
        running.process.send_signal(signal.SIGTERM)
        assert used.sock.recv(1) == b""
        assert unused.recv(1) == b""
        assert running.process.wait(PATIENT) == 0
    assert running.said == []


def result_of(answer: Answer) -> Any:
    """The result of a JSON-RPC answer, be it JSON or an event."""
    if answer.body is not None:
        return answer.body["result"]
    [data] = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(data.removeprefix("data: "))["result"]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(data, 2, "0.2") as running:
        until(lambda: len(python_children(running)) >= 2, PATIENT)
        workers = python_children(running)
        running.kill()
        _, alive = psutil.wait_procs(workers, PATIENT)
        assert alive == []
        assert refuses(running.port)
    with started_again(data) as again:
        assert again.call("list_collections").status == 200


def started_again(data: Path) -> Any:
    return served(data)


def python_children(running: Running) -> list[psutil.Process]:
    return psutil.Process(running.process.pid).children(recursive=True)
