"""Server processes: started on a free port, waited for, pinned to a core, ended."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from bench.messages import ask
from toolgate.settings import PREFIX, borrowed, every_setting

ROOT = Path(__file__).parents[1]
READY_SECONDS = 180
ENDS_SECONDS = 60
REST_SECONDS = 1.3
"""toolgate stores audit rows every quarter of a second and seals them every second."""
CORES = sorted(os.sched_getaffinity(0))
CLIENT_CORES = CORES[1:2] or CORES
"""Servers have the first core, who asks has the second, where there are two."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    port: int
    pids: list[int]
    key: str | None = None
    settle: float = 0.2
    pinned: bool = True
    beside: list[int] = field(default_factory=list[int])
    """A database server's process, whose CPU is counted by itself."""


@contextmanager
def process(
    command: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    pinned: bool = True,
    cwd: Path = ROOT,
    **pipes: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process on the servers' core, ended as an operator would."""
    cores = set(CORES[:1]) if pinned else set(CORES)
    kept = {name: value for name, value in os.environ.items() if not _sets_toolgate(name)}
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=kept | dict(environment or {}),
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        **({"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | pipes),
    ) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.send_signal(signal.SIGTERM)
            try:
                started.wait(ENDS_SECONDS)
            except subprocess.TimeoutExpired:
                started.kill()


def _sets_toolgate(name: str) -> bool:
    return name.startswith(PREFIX) or name in borrowed(every_setting())


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until(ready: Callable[[], bool], started: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        if started.poll() is not None:
            raise RuntimeError(f"A server ended with {started.returncode}: {started.args!r:.200}")
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"A server was not ready within {READY_SECONDS} s: {started.args!r:.200}")


@contextmanager
def plain(command: list[str], port: int) -> Iterator[Server]:
    """A server that is ready as soon as it listens."""

    def listens() -> bool:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True

    with process(command) as started:
        wait_until(listens, started)
        yield Server(port, [started.pid])


@contextmanager
def module(name: str, *arguments: str, python: str = sys.executable) -> Iterator[Server]:
    """One of `bench.apps`; its last argument is the port."""
    port = free_port()
    with plain([python, "-m", f"bench.apps.{name}", *arguments, str(port)], port) as server:
        yield server


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How toolgate runs; its limits stay on, but let a benchmark through."""

    data: Path
    tools: Path
    database_url: str | None = None
    workers: int = 1
    pinned: bool = True
    writes: bool = False
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """The admin key."""
    beside: tuple[int, ...] = ()
    """A database server's process."""

    @property
    def folder(self) -> Path:
        """Where it runs: not where somebody's toolgate.toml may lie."""
        self.data.mkdir(parents=True, exist_ok=True)
        return self.data

    def environment(self) -> dict[str, str]:
        given = {
            "TOOLGATE_DATA": str(self.data),
            "TOOLGATE_ADMIN_KEY": self.key,
            "TOOLGATE_EXTEND__TOOLS": str(self.tools),
            "TOOLGATE_LIMITS__CALLS_PER_MINUTE": "100000000",
        }
        if self.database_url:
            given["TOOLGATE_DATABASE__URL"] = self.database_url
        if self.writes:
            given["TOOLGATE_APPDATA__WRITES"] = "true"
        return given


@contextmanager
def toolgate(settings: Settings) -> Iterator[Server]:
    """The real `toolgate serve`, with demo data."""
    port = free_port()
    command = [sys.executable, "-m", "toolgate", "serve", "--demo", "--port", str(port)]
    command += ["--workers", str(settings.workers)]

    def ready() -> bool:
        return ask(port, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").good

    given, folder = settings.environment(), settings.folder
    with process(command, environment=given, pinned=settings.pinned, cwd=folder) as started:
        wait_until(ready, started)
        yield Server(
            port,
            [started.pid],
            settings.key,
            REST_SECONDS,
            settings.pinned,
            list(settings.beside),
        )


def write_tools(file: Path, count: int) -> Path:
    """A file of so many tools of one's own; the first is the echo."""
    file.write_text(TOOLS.format(count=count))
    return file


def write_json(file: Path, value: Any) -> Path:
    file.write_bytes(orjson.dumps(value))
    return file


TOOLS = """
from toolgate.extend import HandlerContext, Input, Output, tool

READS = {{"readOnlyHint": True, "openWorldHint": False}}


class Words(Input):
    text: str


class Said(Output):
    text: str


def made(name, description):
    @tool(name=name, description=description, role="user", annotations=READS)
    async def again(ctx: HandlerContext, args: Words) -> Said:
        return Said(text=args.text)

    return again


tools = [made("echo", "Say it again.")]
tools += [made(f"filler_{{n}}", f"Say it again, {{n}}.") for n in range(1, {count})]
"""
