"""A real server process that a test may treat badly, and clients that keep asking it."""

import http.client
import json
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded
from tests.patience import PATIENT

KEY = secrets.token_hex(16)
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
SERVE = "from toolgate.cli.main import run; raise SystemExit(run(['serve', '--port', '0']))"


@dataclass(frozen=True)
class Answer:
    """What came back over HTTP."""

    status: int
    body: Any
    text: str
    seconds: float


@dataclass
class Running:
    """The process, its address, and what it wrote to standard error."""

    process: subprocess.Popen[str]
    port: int
    said: list[str] = field(default_factory=list[str])

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        with closing(self.connection()) as connection:
            return ask(connection, method, path, body, **headers)

    def call(self, tool: str, request_id: str = "", **arguments: Any) -> Answer:
        """One call of a tool."""
        return self.ask("POST", f"/v1/tools/{tool}", arguments, **named(request_id))

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENT)

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As an operator would; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENT)


def named(request_id: str) -> dict[str, str]:
    return {"X-Request-Id": request_id} if request_id else {}


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any = None,
    **headers: str,
) -> Answer:
    began = time.monotonic()
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, {"Authorization": f"Bearer {KEY}", **headers})
    answered = connection.getresponse()
    text = answered.read().decode()
    is_json = answered.headers.get_content_type() == "application/json"
    parsed = json.loads(text) if is_json else None
    return Answer(answered.status, parsed, text, time.monotonic() - began)


@contextmanager
def served(data: Path, before: str = "", **settings: str) -> Iterator[Running]:
    """`toolgate serve` on this data; killed on leaving, if it still runs.

    `before`: a program that runs first in its process, to break something there.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")
    }
    environment |= {
        "TOOLGATE_ADMIN_KEY": KEY,
        "TOOLGATE_DATA": str(data),
        "TOOLGATE_LIMITS__CALLS_PER_MINUTE": "0",
        "MCP_ENABLE_WRITES": "true",
        "PYTHONUNBUFFERED": "1",
        **{f"TOOLGATE_{name.upper()}": value for name, value in settings.items()},
    }
    data.mkdir(mode=0o700, exist_ok=True)
    words = ["-c", f"{before}\n{SERVE}"] if before else ["-m", "toolgate", "serve", "--port", "0"]
    start = subprocess.Popen if before else preloaded.Popen
    process = start(
        [sys.executable, *words],
        cwd=data,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[str] = []
    reader = threading.Thread(target=said.extend, args=[process.stderr])
    reader.start()
    try:
        running = Running(process, _port(process.stdout, said), said)
        until(lambda: _ready(running), PATIENT)
        yield running
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


def _port(output: Iterator[str], said: list[str]) -> int:
    for line in output:
        if found := ADDRESS.search(line):
            return int(found[1])
    pytest.fail(f"the server did not start: {''.join(said)}")


def _ready(running: Running) -> bool:
    try:
        return running.ask("GET", "/readyz").status == 200
    except OSError:
        return False


def until(true: Callable[[], bool], seconds: float = PATIENT) -> None:
    """Wait for something that will be so; fail when it is not in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"not so within {seconds:g} s")
        time.sleep(0.02)


class Crowd:
    """Clients that make calls at the same time, until the server is gone or they are done."""

    def __init__(self, running: Running, clients: int, each: int, call: Callable[..., Any]) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[Answer] = []
        self._running = running
        self._call = call
        self._threads = [
            threading.Thread(target=self._ask, args=[number, each]) for number in range(clients)
        ]

    def _ask(self, client: int, each: int) -> None:
        with closing(self._running.connection()) as connection:
            for number in range(each):
                request_id = f"c{client}-{number}"
                tool, arguments = self._call(request_id, number)
                try:
                    answer = ask(
                        connection, "POST", f"/v1/tools/{tool}", arguments, **named(request_id)
                    )
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    self.acknowledged.append(request_id)
                else:
                    self.refused.append(answer)

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()


@dataclass(frozen=True)
class Kept:
    """What lies in the data folder of a server that has ended."""

    documents: set[str]
    rows: list[dict[str, Any]]
    changed: list[str]
    """The request that each change of an app was made by."""

    def requests(self, tool: str, status: str = "success") -> list[str]:
        return [
            row["request_id"]
            for row in self.rows
            if row["tool_name"] == tool and row["status"] == status
        ]


def kept_in(data: Path) -> Kept:
    with closing(sqlite3.connect(data / "toolgate.db")) as connection:
        connection.row_factory = sqlite3.Row
        ids = connection.execute("SELECT id FROM documents WHERE collection = 'apps'")
        documents = {row["id"] for row in ids}
        rows = [dict(row) for row in connection.execute("SELECT * FROM audit ORDER BY seq")]
        changes = connection.execute(
            "SELECT request_id FROM changes LEFT JOIN audit ON audit.id = changes.call "
            "WHERE path LIKE 'apps/%'"
        )
        changed = [row["request_id"] for row in changes]
    return Kept(documents, rows, changed)
