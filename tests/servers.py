"""Real servers for tests: a process, a free port on loopback, demo data, known keys."""

import json
import secrets
import signal
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests import preloaded
from tests.patience import PATIENT

from toolgate.testing import switched_on

ROOT = Path(__file__).parents[1]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and how to reach it."""

    url: str
    admin_key: str
    keys: dict[str, str]
    """Keys by holder: `user`, and the agent types `pm`, `pa` and `worker`."""
    data: Path
    pid: int

    def key_of(self, holder: str) -> str:
        """The key of `admin`, `user`, `pm`, `pa` or `worker`."""
        return self.admin_key if holder == "admin" else self.keys[holder]

    def client(self, holder: str | None = "admin", **headers: str) -> httpx2.Client:
        """An HTTP client with a holder's key; None for no credentials."""
        if holder is not None:
            headers = {"Authorization": f"Bearer {self.key_of(holder)}", **headers}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENT, trust_env=False)

    def audit_rows(self, request_id: str, *, count: int = 1) -> list[Row]:
        """The audit rows of a request, once there are so many."""
        deadline = time.monotonic() + PATIENT
        rows: list[Row] = []
        while time.monotonic() < deadline:
            rows = self._rows(request_id)
            if len(rows) >= count:
                return rows
            pause()
        pytest.fail(f"{len(rows)} audit rows for request {request_id}, wanted {count}")

    def _rows(self, request_id: str) -> list[Row]:
        with closing(sqlite3.connect(self.data / "toolgate.db")) as connection:
            connection.row_factory = sqlite3.Row
            every = "SELECT * FROM audit WHERE request_id = ? ORDER BY seq"
            return [dict(row) for row in connection.execute(every, [request_id])]


@contextmanager
def running_server(
    tmp_path_factory: pytest.TempPathFactory, python: str | None = None, **settings: Any
) -> Iterator[Server]:
    """A server with writes on; settings as `limits__seconds=1`. Its end is checked.

    Given an interpreter, it is started with that one; otherwise it is forked.
    """
    data = tmp_path_factory.mktemp("server")
    admin_key = secrets.token_hex(16)
    flags = {name.replace("__", "."): value for name, value in settings.items()}
    flags = {
        "data": str(data),
        "admin_key": admin_key,
        **switched_on(),
        "limits.calls_per_minute": 0,
        "limits.refusals_per_minute": 1_000_000,
        "limits.guesses_per_minute": 1_000_000,
        "limits.sign_ins_per_minute": 100_000,
        "limits.head_seconds": PATIENT,
        "limits.body_seconds": PATIENT,
        **flags,
    }
    start = subprocess.Popen if python else preloaded.Popen
    command = [python or sys.executable, "-m", "tests.server_process", json.dumps(flags)]
    with start(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the server ended before it listened"
            told = json.loads(line)
            wait_until_ready(told["url"], process)
            yield Server(told["url"], admin_key, told["keys"], data, process.pid)
        finally:
            stop(process)
    assert process.returncode == 0


def wait_until_ready(
    url: str, process: subprocess.Popen[Any], verify: ssl.SSLContext | bool = True
) -> None:
    """Ask for readiness until it is there."""
    deadline = time.monotonic() + PATIENT
    with httpx2.Client(trust_env=False, timeout=PATIENT, verify=verify) as client:
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the server ended with {process.returncode}"
            try:
                if client.get(f"{url}/readyz").status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            pause()
    pytest.fail(f"the server was not ready within {PATIENT:g} s")


def stop(process: subprocess.Popen[Any]) -> None:
    """End a server as an operator would; one that does not obey is killed, and fails the test."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def pause() -> None:
    """Between two looks at something that will happen."""
    time.sleep(0.02)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not need a special one."""
    with running_server(tmp_path_factory) as started:
        yield started
