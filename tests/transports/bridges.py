"""Servers behind a bridge, and clients in front of it: all of them processes of their own."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from tests import preloaded
from tests.patience import PATIENT
from tests.servers import ROOT, stop, wait_until_ready

Mode = Literal["auto", "legacy"]
MODES: list[Mode] = ["auto", "legacy"]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
BRIDGE = ("-m", "tests.transports.patient_bridge", "mcp", "--url")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Backend:
    """A server that can be ended and started again at the same address."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.key = secrets.token_hex(16)
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        flags = {
            "data": str(self.data),
            "admin_key": self.key,
            "server.port": self.port,
            "limits.calls_per_minute": 0,
            "limits.refusals_per_minute": 1_000_000,
            "limits.guesses_per_minute": 1_000_000,
            "limits.body_bytes": 1024 * 1024,
        }
        command = [sys.executable, "-m", "tests.transports.bridge_server"]
        self._process = preloaded.Popen(
            [*command, json.dumps(flags)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        wait_until_ready(self.url, self._process)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        assert self._process is not None
        stop(self._process)
        if self._process.stdout:
            self._process.stdout.close()

    def noted(self, word: str) -> int:
        """How often a tool noted something."""
        file = self.data / "notes"
        return file.read_text().split().count(word) if file.exists() else 0

    async def until(self, word: str, count: int) -> None:
        """Wait until a tool has noted something so many times."""
        with anyio.fail_after(PATIENT):
            while self.noted(word) < count:  # noqa: ASYNC110 (another process notes it)
                await anyio.sleep(0.02)


@contextmanager
def backend(data: Path) -> Iterator[Backend]:
    server = Backend(data)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def bridged(
    url: str,
    key: str | None,
    mode: Mode,
    *arguments: str,
    **options: Any,
) -> AsyncGenerator[mcp.Client, None]:
    """The Python client, through a bridge to a server."""
    program, *rest = preloaded.command(*BRIDGE, url, *arguments)
    env = CLEAN | ({"TOOLGATE_KEY": key} if key else {})
    server = StdioServerParameters(command=program, args=rest, env=env, cwd=ROOT)
    async with mcp.Client(stdio_client(server), mode=mode, **options) as client:
        yield client


class Wire:
    """A bridge as bytes: lines in, lines out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the bridge ended"
        return json.loads(line)

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        """A call of the newer protocol."""
        params = {"name": tool, "arguments": arguments, "_meta": META}
        self.send(id=id, method="tools/call", params=params)

    def ended(self) -> tuple[int, bytes, str]:
        """Close its input: the exit code, what was left on standard output, standard error."""
        out, err = self.process.communicate(timeout=PATIENT)
        return self.process.returncode, out, err.decode()


@contextmanager
def wired(url: str, key: str | None, *arguments: str) -> Iterator[Wire]:
    process = preloaded.Popen(
        [sys.executable, *BRIDGE, url, *arguments],
        cwd=ROOT,
        env=CLEAN | ({"TOOLGATE_KEY": key} if key else {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Wire(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
