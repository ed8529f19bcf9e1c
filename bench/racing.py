"""Measuring several servers in turn, each by a generator process of its own."""

import subprocess
import sys
import time
from dataclasses import dataclass, replace

import orjson

from bench import generator, jobs
from bench.jobs import NEW_ID, Job, Measured, new_id
from bench.messages import ask
from bench.servers import CLIENT_CORES, CORES, ROOT, Server

ROUNDS = 5
SECONDS = 1.5
CONNECTIONS = 16
BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """One contestant: a server and what it is asked."""

    name: str
    server: Server
    requests: list[bytes]
    """With NEW_ID where each call needs an id of its own."""
    marker: bytes
    """What a right answer holds."""
    connections: int = CONNECTIONS


def tell(text: str) -> None:
    """Progress, beside the table."""
    print(f"{time.monotonic() - BEGAN:5.0f} s  {text}", file=sys.stderr, flush=True)


def race(runners: list[Runner], rounds: int) -> dict[str, Measured]:
    """The best of several interleaved rounds, by name."""
    jobs = {one.name: job_of(one) for one in runners}
    best: dict[str, Measured] = {}
    for number in range(1, rounds + 1):
        for name, job in jobs.items():
            now = generate(job)
            tell(
                f"  round {number}: {name:34} {now.cpu:8.1f} µs CPU a call  "
                f"{now.per_second:8.0f}/s  p50 {now.p50 / 1e3:6.2f} ms  p99 {now.p99 / 1e3:6.2f} ms"
                f"  (database {now.beside:.0f} µs; generator {now.own_cpu:.0f} µs; "
                f"server without a core {now.waited:.0%})"
            )
            best[name] = better(best[name], now) if name in best else now
    return best


def better(one: Measured, other: Measured) -> Measured:
    """The best of each figure."""
    return replace(
        one,
        per_second=max(one.per_second, other.per_second),
        cpu=min(one.cpu, other.cpu),
        p50=min(one.p50, other.p50),
        p99=min(one.p99, other.p99),
        own_cpu=min(one.own_cpu, other.own_cpu),
        beside=min(one.beside, other.beside),
        waited=min(one.waited, other.waited),
    )


def job_of(runner: Runner) -> Job:
    """What the generator is told, once a first answer is known to be right."""
    server, id = runner.server, new_id()
    first = ask(server.port, runner.requests[0].replace(NEW_ID, id))
    body = first.body.replace(id, NEW_ID)
    if not first.good or runner.marker not in body:
        raise generator.WrongAnswer(f"{runner.name}: {first.head!r} {first.body[:1000]!r}")
    return Job(
        port=server.port,
        requests=runner.requests,
        body=body,
        connections=runner.connections,
        seconds=SECONDS,
        pids=server.pids,
        beside=server.beside,
        settle=server.settle,
        cores=CLIENT_CORES if server.pinned else CORES,
    )


def generate(job: Job) -> Measured:
    """Run the generator; a wrong answer ends everything."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.generator"],
        input=jobs.packed(job),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise generator.WrongAnswer(done.stderr.strip()[-2000:])
    return Measured(**orjson.loads(done.stdout))
