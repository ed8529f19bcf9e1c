"""Peers, installed into environments of their own below .cache/bench from locked lists."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conformance import node

from bench.servers import ROOT

CACHE = ROOT / ".cache" / "bench"
LOCKS = Path(__file__).parent / "peers"
MANIFEST = ("package.json", "package-lock.json", ".npmrc")
SECONDS = 600


class Missing(Exception):
    """A peer cannot be installed here; the message says why."""


def fastmcp() -> str:
    """The Python of an environment with FastMCP."""
    return environment(CACHE / "fastmcp", LOCKS / "requirements.txt")


def environment(home: Path, lock: Path) -> str:
    """The Python of an environment with what a lock lists."""
    python = home / "bin" / "python"

    def install() -> None:
        uv = str(Path(sys.executable).with_name("uv"))
        _run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)])
        _run([uv, "pip", "install", "-q", "--python", str(python), "--require-hashes", "-r",
              str(lock)])  # fmt: skip

    _once(home, lock, install)
    return str(python)


def toolbox() -> str:
    """The program of MCP Toolbox for Databases."""
    home = CACHE / "toolbox"
    program = home / "node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox"

    def install() -> None:
        for name in MANIFEST:
            shutil.copyfile(LOCKS / name, home / name)
        try:
            found = node.find()
            done = found.run(str(found.npm), "ci", cwd=home, timeout=SECONDS)
        except (node.NodeUnavailable, OSError, subprocess.TimeoutExpired) as problem:
            raise Missing(f"npm ci: {problem}") from problem
        if done.returncode:
            raise Missing(_last_line("npm ci", done.stderr))

    _once(home, LOCKS / "package-lock.json", install)
    return str(program)


def _once(home: Path, lock: Path, install: Callable[[], None]) -> None:
    """Install unless this very lock is installed."""
    stamp = home / "installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:  # by another process meanwhile
            return
        home.mkdir(exist_ok=True)
        install()
        stamp.write_text(wanted)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Missing(f"{Path(command[0]).name}: {type(problem).__name__}") from problem
    if done.returncode:
        raise Missing(_last_line(" ".join([Path(command[0]).name, *command[1:3]]), done.stderr))


def _last_line(what: str, told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return f"{what} failed: {lines[-1] if lines else 'without a word'}"
