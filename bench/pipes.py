"""MCP on standard input and output: one line out, one line back, by a plain blocking client."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import cpu
from bench.generator import WrongAnswer, percentile
from bench.jobs import Measured
from bench.messages import ECHO, NEW, OLD, TEXT, message
from bench.racing import better, tell
from bench.servers import CLIENT_CORES, ROOT, Settings, process
from bench.stage import Stage

WARM_UP, CALLS = 200, 1500
HELLOS = 10
OF_SDK = 0.25
OURS, SDK = "toolgate mcp", "SDK stdio server"


class Pipe:
    """A server at the other end of two pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self._to, self._back = process.stdin, process.stdout
        self.pid = process.pid

    def ask(self, line: bytes) -> bytes:
        self._to.write(line)
        self._to.flush()
        return self._back.readline()

    def greet(self) -> None:
        """The handshake of the older protocol."""
        info: dict[str, Any] = {
            "protocolVersion": OLD,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        if b'"result"' not in (told := self.ask(message("initialize", info, OLD) + b"\n")):
            raise WrongAnswer(f"Not an answer to initialize: {told[:1000]!r}")
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self._to.write(json.dumps(ready).encode() + b"\n")


def stdio(stage: Stage) -> None:
    """Round trips, ours beside the SDK's."""
    ours = Settings(data=stage.folder / "stdio", tools=stage.tools)
    commands = {
        OURS: ([sys.executable, "-m", "toolgate", "mcp"], ours.environment(), ours.folder),
        SDK: ([sys.executable, "-m", "bench.apps.sdk", str(stage.listed)], {}, ROOT),
    }
    _prepare(ours)
    os.sched_setaffinity(0, CLIENT_CORES)
    for era in (NEW, OLD):
        tell(f"echo on stdio, {era}")
        best: dict[str, Measured] = {}
        with _opened(*commands[OURS], era) as our_pipe, _opened(*commands[SDK], era) as sdk_pipe:
            for number in range(1, stage.rounds + 1):
                for name, pipe in ((OURS, our_pipe), (SDK, sdk_pipe)):
                    now = _measured(pipe, era)
                    tell(f"  round {number}: {name:34} p50 {now.p50:.0f} µs  p99 {now.p99:.0f} µs")
                    best[name] = better(best[name], now) if name in best else now
        stage.book.note(f"stdio echo {era}", best)
        what = f"stdio echo {era}: p50 / SDK's"
        stage.book.times(what, best[OURS].p50, best[SDK].p50, OF_SDK)


def _prepare(settings: Settings) -> None:
    """Make the data folder; on stdio none is made."""
    command = [sys.executable, "-m", "toolgate", "db", "upgrade"]
    subprocess.run(
        command,
        check=True,
        cwd=settings.folder,
        env=dict(os.environ) | settings.environment(),
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def _opened(
    command: list[str], environment: dict[str, str], folder: Path, era: str
) -> Iterator[Pipe]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with process(command, environment=environment, cwd=folder, **pipes) as started:
        pipe = Pipe(started)
        if era == OLD:
            pipe.greet()
        yield pipe


def _measured(pipe: Pipe, era: str) -> Measured:
    line = message("tools/call", ECHO, era) + b"\n"
    for _ in range(HELLOS):  # until the handshake is over, calls may go another way
        expected = pipe.ask(line)
    if TEXT.encode() not in expected:
        raise WrongAnswer(f"Not an echo: {expected[:1000]!r}")
    _trips(pipe, line, expected, WARM_UP)
    before, own = cpu.spent([pipe.pid]), time.process_time_ns()
    began = time.perf_counter()
    lasted = _trips(pipe, line, expected, CALLS)
    took, own = time.perf_counter() - began, time.process_time_ns() - own
    used = cpu.between(before, cpu.spent([pipe.pid]))
    return Measured(
        calls=CALLS,
        per_second=CALLS / took,
        cpu=used / CALLS / 1e3,
        p50=percentile(lasted, 0.50),
        p99=percentile(lasted, 0.99),
        own_cpu=own / CALLS / 1e3,
    )


def _trips(pipe: Pipe, line: bytes, expected: bytes, count: int) -> list[int]:
    lasted: list[int] = []
    for _ in range(count):
        began = time.perf_counter_ns()
        answer = pipe.ask(line)
        lasted.append(time.perf_counter_ns() - began)
        if answer != expected:
            raise WrongAnswer(f"Not the expected answer: {answer[:1000]!r}")
    return lasted
