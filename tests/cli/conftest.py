"""Ways to run commands: as real processes, or in this one where many are needed."""

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests import preloaded
from tests.patience import PATIENT

OURS = ("TOOLGATE_", "GOOGLE_", "FIREBASE_", "FIRESTORE_", "MCP_", "BACKEND_MANAGER_")


def is_ours(variable: str) -> bool:
    return variable.startswith(OURS)


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment without what speaks to us."""
    return {name: value for name, value in os.environ.items() if not is_ours(name)}


@pytest.fixture
def process(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Run a command as its own process in an empty folder."""

    def run(*arguments: str, input: str = "", **variables: str) -> Ended:
        ended = preloaded.run(
            [sys.executable, "-m", "toolgate", *arguments],
            cwd=tmp_path,
            env=environment | variables,
            input=input,
            capture_output=True,
            text=True,
            timeout=PATIENT,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Ended]]:
    """Run a command in this process, in an empty folder."""
    from toolgate.cli.main import run

    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if is_ours(name):
            monkeypatch.delenv(name)
    handlers, level = logging.root.handlers[:], logging.root.level

    def in_process(*arguments: str) -> Ended:
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    yield in_process
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture(scope="session")
def empty_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as the first start leaves it, to be copied."""
    from toolgate.cli.main import run

    folder = tmp_path_factory.mktemp("data") / ".toolgate"
    handlers, level = logging.root.handlers[:], logging.root.level
    assert run(["db", "upgrade", "--data", str(folder)]) == 0
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    return folder


@pytest.fixture
def data(tmp_path: Path, empty_data: Path) -> Path:
    """Data in the folder where commands run."""
    return Path(shutil.copytree(empty_data, tmp_path / ".toolgate"))


@dataclass
class Running:
    """A server process that has greeted."""

    process: subprocess.Popen[str]
    greeting: str
    url: str
    key: str | None
    ended: Ended | None = field(default=None)

    def call(self, tool: str, key: str | None = None, **arguments: Any) -> tuple[int, Any]:
        """One call over HTTP: the status and the body."""
        request = Request(f"{self.url}/v1/tools/{tool}", json.dumps(arguments).encode())
        request.add_header("Authorization", f"Bearer {key or self.key}")
        try:
            with urlopen(request, timeout=PATIENT) as answer:
                return answer.status, json.load(answer)
        except HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)

    def stop(self, number: int = signal.SIGTERM) -> Ended:
        """End it with a signal and wait."""
        if self.ended is None:
            self.process.send_signal(number)
            out, err = self.process.communicate(timeout=PATIENT)
            self.ended = Ended(self.process.returncode, self.greeting + out, err)
        return self.ended


@pytest.fixture
def served(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Any]:
    """Start `toolgate serve` on a free port; yields it when it has greeted."""

    @contextmanager
    def start(*arguments: str, **variables: str) -> Iterator[Running]:
        process = preloaded.Popen(
            [sys.executable, "-m", "toolgate", "serve", "--port", "0", *arguments],
            cwd=tmp_path,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        guard = threading.Timer(PATIENT, process.kill)
        guard.start()
        try:
            running = _greeted(process, tmp_path)
            yield running
            running.stop()
        finally:
            guard.cancel()
            if process.poll() is None:
                process.kill()
                process.communicate()

    return start


def _greeted(process: subprocess.Popen[str], folder: Path) -> Running:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "claude mcp add" in line:
            break
    else:
        _, err = process.communicate()
        raise AssertionError(f"the server ended: {err}")
    words = "".join(lines).split()
    url = next(word for word in words if word.startswith(("http://", "https://")))
    # Only a terminal is shown the key itself.
    kept = re.search(r"^ +Key +in (\S+)", "".join(lines), re.MULTILINE)
    key = (folder / kept[1]).read_text(encoding="utf-8").strip() if kept else None
    return Running(process, "".join(lines), url, key)
