"""A server is started, written to and killed, again and again on the same data."""

import os
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import mean

import anyio
import psycopg
from tests.each_worker import worker_pids
from tests.faults.kills import ledger
from tests.faults.kills.stored import check_all, none_of, stored_in, verdict_on
from tests.faults.kills.writers import CREATE, PACKS, Writers
from tests.faults.server import Running, served, until
from tests.patience import PATIENT

MOST_BEFORE_A_KILL = 150
"""Writes that are acknowledged in between, at most."""
LATER_SECONDS = 0.02
WHOLE_SERVER, MAIN_ALONE, ONE_WORKER = "whole server", "main process alone", "one worker"
KINDS = {1: [WHOLE_SERVER], 2: [WHOLE_SERVER, MAIN_ALONE, ONE_WORKER]}
"""What is killed, by the number of workers."""
SEARCHED = 5
OF_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
END_CONNECTIONS = (
    f"SELECT pg_terminate_backend(pid) {OF_OTHERS} ORDER BY state = 'idle', random() LIMIT %s"
)


@dataclass
class Cycles:
    """The data, its writers, and what has become of both."""

    data: Path
    url: str
    workers: int
    seed: int
    kills: Counter[str] = field(default_factory=Counter[str])
    starts: list[float] = field(default_factory=list[float])
    """How long it took until each server was ready."""
    stored: int = 0

    def __post_init__(self) -> None:
        print(f"SEED={self.seed}", flush=True)
        self._chance = random.Random(self.seed)
        self._kinds: list[str] = []
        self.writers = Writers(self._chance)
        self.data.mkdir(mode=0o700)
        ledger.install(self.data)
        self._settings = {
            "database__url": self.url,
            "packs__enabled": ",".join(PACKS),
            "server__workers": str(self.workers),
            "server__drain_seconds": f"{PATIENT:g}",
        }

    def run(self, kills: int, check_every: int) -> None:
        """Kill so often, and look at what is left every few times and at the end."""
        checked = 0
        while (done := self.kills.total()) < kills:
            self._live_and_die(kills - done)
            if self.kills.total() - checked >= check_every:
                checked = self.kills.total()
                self.check()
                print(self, flush=True)
        self.disturb(lambda: None)
        print(self, flush=True)
        none_of([(one.status, one.text) for one in self.writers.answers], "refusals")

    def disturb(self, act: Callable[[], object], times: int = 1) -> None:
        """Do something to a server that lives on; what nobody knew of before is found out."""
        with self._served() as running:
            with self.writers.at_work(running):
                for _ in range(times):
                    self._at_some_moment(act)
                self.writers.at(MOST_BEFORE_A_KILL, lambda: None)
            self._search(running)
            assert running.stop() == 0
        self.check()
        assert anyio.run(verdict_on, self.url).unsealed == 0

    def end_connections(self, times: int) -> None:
        """PostgreSQL ends some of the server's connections, best those that write, or all."""
        at_once = cycle([1, 1, 100])

        def end() -> None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(END_CONNECTIONS, [next(at_once)])

        self.disturb(end, times)
        print(self, flush=True)
        assert self.writers.cut == 0
        assert {one.status for one in self.writers.answers} <= {503, 504}

    def check(self) -> None:
        """Look at everything that is stored."""
        none_connected(self.url)
        self.stored = check_all(stored_in(self.url), self.writers.writes)
        assert anyio.run(verdict_on, self.url).findings == []

    def _live_and_die(self, kills: int) -> None:
        """One server: perhaps some of its workers are killed, one after the other, then all of it.

        Leaving `served` waits for the last of its processes.
        """
        with self._served() as running, self.writers.at_work(running):
            main = running.process.pid
            for _ in range(kills):
                kind = self._next_kind()
                killed = self._processes(main, kind)
                self._at_some_moment(lambda killed=killed: kill(killed))
                self.kills[kind] += 1
                if kind != ONE_WORKER:
                    running.process.wait()
                    return
                until(lambda gone=killed: len(worker_pids(main).difference(gone)) == self.workers)

    @contextmanager
    def _served(self) -> Generator[Running]:
        began = time.monotonic()
        with served(self.data, **self._settings) as running:
            self.starts.append(time.monotonic() - began)
            yield running

    def _processes(self, main: int, kind: str) -> list[int]:
        """Those to be killed, in an order of chance; workers whose main process is gone end too."""
        if kind == MAIN_ALONE:
            return [main]
        workers = sorted(worker_pids(main))
        if kind == ONE_WORKER:
            return [self._chance.choice(workers)]
        return self._chance.sample([main, *workers], 1 + len(workers))

    def _next_kind(self) -> str:
        """Each as often as the others, in an order of chance."""
        if not self._kinds:
            self._kinds = list(KINDS[self.workers])
            self._chance.shuffle(self._kinds)
        return self._kinds.pop()

    def _at_some_moment(self, act: Callable[[], object]) -> None:
        """At once when some write is acknowledged, which had better be stored then, or soon after.

        In between a client is told of others, and the server is somewhere in its next ones.
        """
        after = self._chance.choice([0, self._chance.uniform(0, LATER_SECONDS)])

        def wait_and_act() -> None:
            time.sleep(after)
            act()

        more = self._chance.randint(1, MOST_BEFORE_A_KILL)
        self.writers.at(more, wait_and_act if after else act)

    def _search(self, running: Running) -> None:
        """Some of the documents are found by their fields, each once."""
        made = [one for one in self.writers.writes if one.tool == CREATE and one.settled]
        for one in self._chance.sample(made, SEARCHED):
            fields = one.arguments["data"]
            for name, operator, value in (
                ("by", "==", one.name),
                ("tags", "array-contains", f"w{fields['place']['writer']}"),
            ):
                filters = [
                    {"field": name, "operator": operator, "value": value},
                    {"field": "number", "operator": "==", "value": fields["number"]},
                ]
                answer = running.call("query_collection", collection="apps", filters=filters)
                assert answer.body["data"] == [{"id": one.name, **fields}]

    def __str__(self) -> str:
        database = self.url.partition(":")[0]
        kills = ", ".join(f"{count} of {kind}" for kind, count in self.kills.items())
        refusals = Counter(one.status for one in self.writers.answers)
        found = sum(one.taken for one in self.writers.writes)
        return (
            f"{database}, {self.workers} workers, SEED={self.seed}: kills: {kills or 'none'}; "
            f"{self.writers.settled} writes acknowledged ({found} when asked again), "
            f"{self.stored} stored, {self.writers.cut} requests without an answer, "
            f"refusals by status: {dict(refusals)}; ready after {mean(self.starts):.1f} s, "
            f"at most {max(self.starts):.1f} s"
        )


def kill(processes: list[int]) -> None:
    for one in processes:
        os.kill(one, signal.SIGKILL)


def seed() -> int:
    """That of the setting SEED, to do the same again; else a new one."""
    return int(os.environ.get("SEED") or secrets.randbelow(1_000_000))


def none_connected(url: str) -> None:
    """PostgreSQL may still be at work for a client that was killed: wait until it is done."""
    if url.startswith("sqlite"):
        return
    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: connection.execute(f"SELECT count(*) {OF_OTHERS}").fetchone() == (0,))
