"""The load generator: one thread, epoll, requests as ready bytes; a process of its own.

python -m bench.generator < job.json

It is cheap on purpose: what it spends is taken from the server where they share a core. Every
answer is compared with the one expected, byte for byte; a wrong one ends the run.
"""

import json
import os
import random
import re
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import cycle

from bench import cpu, jobs
from bench.jobs import NEW_ID, Job, Measured, new_id

OK = b"HTTP/1.1 200 "
HEAD_BYTES = 4096
PATIENCE_SECONDS = 20
SPIN = 150_000
"""Nanoseconds before a planned call in which the generator does not sleep: it would wake late."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

Lasted = list[int]


class WrongAnswer(Exception):
    """A server answered something else than it should."""


class Connections:
    """Kept-open connections to one server."""

    def __init__(self, job: Job) -> None:
        # Not always from the first on: a server may remember whom it saw in the last round.
        start = random.randrange(len(job.requests))
        self._next = cycle(job.requests[start:] + job.requests[:start]).__next__
        self._tail = b"\r\n\r\n" + job.body
        self._has_ids = NEW_ID in job.requests[0]
        self._most = len(self._tail) + HEAD_BYTES
        self._epoll = select.epoll()
        self._parts: dict[int, bytes] = {}
        self._sockets = [_connected(job.port) for _ in range(job.connections)]
        self.numbers = [one.fileno() for one in self._sockets]
        self._tails = dict.fromkeys(self.numbers, self._tail)
        for number in self.numbers:
            self._epoll.register(number, select.EPOLLIN)

    def close(self) -> None:
        self._epoll.close()
        for one in self._sockets:
            one.close()

    def ask(self, number: int) -> None:
        request = self._next()
        if self._has_ids:
            id = new_id()
            request = request.replace(NEW_ID, id)
            self._tails[number] = self._tail.replace(NEW_ID, id)
        if os.write(number, request) != len(request):
            raise WrongAnswer("The server does not take a whole request at once.")

    def answered(self, *, wait: bool) -> list[int]:
        """The connections on which a whole, right answer has come."""
        ready = self._epoll.poll(PATIENCE_SECONDS if wait else 0)
        if wait and not ready:
            raise WrongAnswer(f"The server did not answer within {PATIENCE_SECONDS} s.")
        return [number for number, _ in ready if self._whole(number)]

    def rest(self, seconds: float) -> None:
        """Sleep until an answer comes, or so long."""
        select.select([self._epoll], [], [], seconds)

    def _whole(self, number: int) -> bool:
        data, tail = os.read(number, self._most), self._tails[number]
        if data.endswith(tail) and data.startswith(OK):
            return True
        if not data:
            raise WrongAnswer("The server closed the connection.")
        data = self._parts.pop(number, b"") + data
        if data.endswith(tail) and data.startswith(OK):
            return True
        self._check_part(data)
        self._parts[number] = data
        return False

    def _check_part(self, data: bytes) -> None:
        head = data.find(b"\r\n\r\n")
        if head < 0 and len(data) < HEAD_BYTES:
            return
        length = LENGTH.search(data, 0, head)
        wanted = len(self._tail) - 4
        if (
            not data.startswith(OK)
            or (length and int(length[1]) != wanted)
            or len(data) - head - 4 >= wanted
        ):
            raise WrongAnswer(f"Not the expected answer: {data[:1000]!r}")


def _connected(port: int) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setblocking(False)
    return one


def closed_loop(connections: Connections, more: Callable[[int], bool]) -> Lasted:
    """Ask on every connection, again after each answer; `more` is told how many were asked."""
    now = time.perf_counter_ns
    lasted: Lasted = []
    asked_at: dict[int, int] = {}
    asked = 0
    for number in connections.numbers:
        asked_at[number] = now()
        connections.ask(number)
        asked += 1
    while len(lasted) < asked:
        for number in connections.answered(wait=True):
            at = now()
            lasted.append(at - asked_at[number])
            if more(asked):
                asked_at[number] = at
                connections.ask(number)
                asked += 1
    return lasted


def paced(connections: Connections, calls: int, rate: float) -> Lasted:
    """Ask at fixed times, whatever the server does; late answers count from the planned time."""
    now = time.perf_counter_ns
    apart = 1e9 / rate
    free = deque(connections.numbers)
    planned_at: dict[int, float] = {}
    lasted: Lasted = []
    asked = 0
    begin = now()
    give_up = begin + (calls / rate + PATIENCE_SECONDS) * 1e9
    while len(lasted) < calls:
        if now() > give_up:
            raise WrongAnswer(f"The server is {PATIENCE_SECONDS} s behind the planned load.")
        while asked < calls and free and begin + asked * apart <= now():
            number = free.popleft()
            planned_at[number] = begin + asked * apart
            connections.ask(number)
            asked += 1
        due = begin + asked * apart if free and asked < calls else give_up
        if (pause := due - now() - SPIN) > 0:
            connections.rest(pause / 1e9)
        for number in connections.answered(wait=False):
            lasted.append(round(now() - planned_at[number]))
            free.append(number)
    return lasted


def run(job: Job) -> Measured:
    """Warm up, wait until the server rests, measure, and wait again before its CPU is read."""
    connections = Connections(job)
    try:
        speed = job.rate or _warmed_up(connections, job.warm_up)
        calls = max(round(speed * job.seconds), job.connections)
        cpu.settle(job.pids + job.beside, job.settle)
        before, own = cpu.spent(job.pids), time.process_time_ns()
        before_beside = cpu.spent(job.beside)
        waited = cpu.waited(job.pids[0]) if job.pids else 0
        began = time.perf_counter()
        if job.rate is None:
            lasted = closed_loop(connections, lambda asked: asked < calls)
        else:
            lasted = paced(connections, calls, job.rate)
        took, own = time.perf_counter() - began, time.process_time_ns() - own
        waited = (cpu.waited(job.pids[0]) if job.pids else 0) - waited
        cpu.settle(job.pids + job.beside, job.settle)
        used = cpu.between(before, cpu.spent(job.pids))
        beside = cpu.between(before_beside, cpu.spent(job.beside))
    finally:
        connections.close()
    count = len(lasted)
    return Measured(
        calls=count,
        per_second=count / took,
        cpu=used / count / 1e3,
        p50=percentile(lasted, 0.50),
        p99=percentile(lasted, 0.99),
        own_cpu=own / count / 1e3,
        beside=beside / count / 1e3,
        waited=waited / 1e9 / took,
    )


def _warmed_up(connections: Connections, seconds: float) -> float:
    """Calls a second in a first while that is not measured."""
    began = time.perf_counter()
    until = began + seconds
    lasted = closed_loop(connections, lambda _: time.perf_counter() < until)
    return len(lasted) / (time.perf_counter() - began)


def percentile(lasted: Sequence[int], part: float) -> float:
    """Microseconds that this part of the calls did not exceed."""
    ordered = sorted(lasted)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] / 1e3


def main() -> None:
    job = jobs.unpacked(sys.stdin.read())
    if job.cores:
        os.sched_setaffinity(0, job.cores)
    try:
        print(json.dumps(asdict(run(job))))
    except (WrongAnswer, OSError) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
