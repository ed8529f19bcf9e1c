"""Standard input and output of a process of its own: nothing but messages, and its end."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded
from tests.patience import PATIENT
from tests.servers import ROOT
from tests.transports.mcp_requests import ERAS, LEGACY, MODERN
from tests.transports.peers import INITIALIZED, call, hello, message

OTHERS = ("TOOLGATE_", "PYTHONUNBUFFERED")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)


def told(folder: Path, *messages: dict[str, Any]) -> tuple[list[Any], str]:
    """What a server with stray tools answers to each of these, and its standard error."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.transports.stdio_server", str(folder)],
        cwd=ROOT,
        env=CLEAN,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin
    assert server.stdout
    assert server.stderr
    answers: list[Any] = []
    with server:
        for one in messages:
            server.stdin.write(lines(one))
            server.stdin.flush()
            if "id" in one:
                answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.stdout.read() == b"after the end\n", "standard output is given back"
        said = server.stderr.read().decode()
    assert server.returncode == 0
    return answers, said


def mcp(folder: Path, **streams: Any) -> subprocess.Popen[bytes]:
    return preloaded.Popen(
        [sys.executable, "-m", "toolgate", "mcp", "--data", str(folder)],
        env=CLEAN | {"TOOLGATE_DATABASE__URL": f"sqlite:///{folder / 'toolgate.db'}"},
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        | streams,
    )


@pytest.mark.parametrize("era", ERAS)
def test_what_tools_print_does_not_come_between_messages(tmp_path: Path, era: str) -> None:
    first = [] if era == MODERN else [hello(), INITIALIZED]
    answers, said = told(tmp_path, *first, call("stray", {}, era=era, id=2))
    assert [one["id"] for one in answers] == (["hello", 2] if first else [2])
    assert answers[-1]["result"]["structuredContent"] == {"heard": ""}
    assert sorted(said.splitlines()) == ["by a child", "printed", "written"]


@pytest.mark.parametrize(
    ("first", "loaded"),
    [(message("tools/list"), False), (message("server/discover"), True)],
    ids=["lists", "discovers"],
)
def test_the_sdk_is_loaded_when_it_is_needed(
    tmp_path: Path, first: dict[str, Any], loaded: bool
) -> None:
    answers, _ = told(tmp_path, first, call("loaded", {}))
    assert answers[1]["result"]["structuredContent"] == {"sdk": loaded}


def test_a_file_for_standard_input_and_one_for_standard_output(tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    wanted = [call("list_collections", {}, era=LEGACY, id=id) for id in range(50)]
    asked.write_bytes(lines(hello(), INITIALIZED, *wanted))
    with asked.open("rb") as source, answered.open("wb") as target:
        server = mcp(tmp_path, stdin=source, stdout=target)
        _, said = server.communicate(timeout=PATIENT)
    assert server.returncode == 0
    assert b"Traceback" not in said
    answers = [json.loads(one) for one in answered.read_bytes().splitlines()]
    assert [one["id"] for one in answers[:1]] == ["hello"]
    assert sorted(one["id"] for one in answers[1:]) == list(range(50))
    assert all("result" in one for one in answers)


def test_no_standard_input(tmp_path: Path) -> None:
    server = mcp(tmp_path, stdin=subprocess.DEVNULL)
    out, said = server.communicate(timeout=PATIENT)
    assert (server.returncode, out) == (0, b"")
    assert b"Traceback" not in said


def test_a_client_that_does_not_read_any_more_ends_it(tmp_path: Path) -> None:
    server = mcp(tmp_path)
    assert server.stdin
    assert server.stdout
    assert server.stderr
    with server:
        server.stdin.write(lines(hello()))
        server.stdin.flush()
        assert server.stdout.readline()
        server.stdout.close()
        server.stdin.write(lines(message("ping", era=LEGACY)))
        server.stdin.flush()
        assert server.wait(PATIENT) == 1
        assert server.stderr.read().decode().splitlines()[-1] == "Error: broken pipe."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_the_client_reads_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    server = mcp(tmp_path)
    assert server.stdin
    assert server.stdout
    with server:
        server.stdin.write(lines(message("tools/list")))
        server.stdin.flush()
        assert server.stdout.read(1) == b"{"
        # More than a pipe holds; the server goes on reading, so all of this can be written.
        server.stdin.write(lines(*(message("tools/list", id=id) for id in range(200))))
        server.stdin.flush()
        server.send_signal(number)
        assert server.wait(PATIENT) == 0


def test_a_terminal(tmp_path: Path) -> None:
    outside, inside = pty.openpty()
    server = mcp(tmp_path, stdin=inside)
    assert server.stdout
    with server:
        os.write(outside, lines(message("tools/list")))
        assert json.loads(server.stdout.readline())["id"] == 1
        os.write(outside, b"\x04")  # what ends a terminal's input
        assert server.wait(PATIENT) == 0
    os.close(inside)
    os.close(outside)
