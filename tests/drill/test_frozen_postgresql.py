"""Every process of PostgreSQL is stopped under load: seconds, lines and the end of the server."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.databases import running_postgres
from tests.faults.server import Running, served

LIMIT = 2.0
ANSWERED_WITHIN = LIMIT + 4
STOPPED_WITHIN = 20.0
LOAD_SECONDS = 8.0
MAX_LINES = 12


def processes_of(postgres: Any) -> list[int]:
    """The server's main process and its children."""
    main = int((Path(postgres.pgdata) / "postmaster.pid").read_text().splitlines()[0])
    children = [
        int(one.parent.name)
        for one in Path("/proc").glob("[0-9]*/stat")
        if (told := read(one)) and int(told.rpartition(")")[2].split()[1]) == main
    ]
    return [main, *children]


def read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


@contextmanager
def frozen(postgres: Any) -> Iterator[None]:
    stopped = processes_of(postgres)
    for one in stopped:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in reversed(stopped):
            os.kill(one, signal.SIGCONT)


def load(running: Running, seconds: float) -> list[tuple[int, float]]:
    """Statuses and seconds of what eight clients were answered."""
    answers: list[tuple[int, float]] = []
    until = time.monotonic() + seconds

    def ask(number: int) -> None:
        while time.monotonic() < until:
            if number % 2:
                told = running.call("create_document", collection="apps", data={"n": number})
            else:
                told = running.call("query_collection", collection="apps")
            answers.append((told.status, told.seconds))

    clients = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    return answers


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")
@pytest.mark.timeout(300)
def test_calls_are_answered_the_log_is_short_and_the_server_can_be_stopped(tmp_path: Path) -> None:
    with running_postgres() as postgres:
        url = postgres.get_uri()
        with served(tmp_path / "data", database__url=url, limits__seconds="2") as running:
            assert {status for status, _ in load(running, 1)} == {200}
            with frozen(postgres):
                answers = load(running, LOAD_SECONDS)
                assert running.ask("GET", "/healthz").seconds < 1
                lines = len(running.said)
                began = time.monotonic()
                ended = running.stop()
                took = time.monotonic() - began
            longest = max(seconds for _, seconds in answers)
            print(f"{len(answers)} answers, longest {longest:.2f} s; {lines} lines in the log")
            print(f"stopped after {took:.2f} s with exit code {ended}")
            print("".join(running.said))
            assert {status for status, _ in answers} <= {503, 504}
            assert longest < ANSWERED_WITHIN
            assert lines <= MAX_LINES
            assert (ended, "Traceback" in "".join(running.said)) == (0, False)
            assert took < STOPPED_WITHIN


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")
@pytest.mark.timeout(300)
def test_after_the_freeze_everything_is_as_before_and_that_is_told(tmp_path: Path) -> None:
    with running_postgres() as postgres:
        url = postgres.get_uri()
        with served(tmp_path / "data", database__url=url, limits__seconds="2") as running:
            with frozen(postgres):
                assert {status for status, _ in load(running, 4)} <= {503, 504}
            until = time.monotonic() + 60
            while "works again" not in "".join(running.said):
                assert time.monotonic() < until
                running.call("query_collection", collection="apps")
            assert {status for status, _ in load(running, 1)} == {200}
            assert running.stop() == 0
            print("".join(running.said))
