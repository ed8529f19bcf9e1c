"""A server is started, written to and killed, again and again on the same data."""

import os
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psycopg
import pytest
from tests.databases import new_database
from tests.each_worker import worker_pids
from tests.faults.kills import ledger
from tests.faults.kills.stored import check_all, stored_in, verdict_on
from tests.faults.kills.writers import CREATE, PACKS, Writers
from tests.faults.server import Running, served, until

MOST_BEFORE_A_KILL = 150
"""Writes that are acknowledged in between, at most."""
JITTER_SECONDS = 0.02
WHOLE_SERVER, MAIN_ALONE, ONE_WORKER = "whole server", "main process alone", "one worker"
KINDS = {1: [WHOLE_SERVER], 2: [WHOLE_SERVER, MAIN_ALONE, ONE_WORKER]}
"""What is killed, by the number of workers."""
SEARCHED = 5


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
            "server__drain_seconds": "1",
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
        assert [(one.status, one.text) for one in self.writers.answers] == []

    def disturb(self, act: Callable[[], object], times: int = 1) -> None:
        """Do something to a server that lives on; what nobody knew of before is found out."""
        with served(self.data, **self._settings) as running:
            with self.writers.at_work(running):
                for _ in range(times):
                    self._wait_for(self._chance.randint(1, MOST_BEFORE_A_KILL))
                    act()
                self._wait_for(MOST_BEFORE_A_KILL)
            self._search(running)
            assert running.stop() == 0
        self.check()
        assert anyio.run(verdict_on, self.url).unsealed == 0

    def check(self) -> None:
        """Look at everything that is stored."""
        none_connected(self.url)
        self.stored = check_all(stored_in(self.url), self.writers.writes)
        assert anyio.run(verdict_on, self.url).findings == []

    def _live_and_die(self, kills: int) -> None:
        """One server: perhaps some of its workers are killed, one after the other, then all of it.

        Leaving `served` waits for the last of its processes.
        """
        began = time.monotonic()
        with served(self.data, **self._settings) as running, self.writers.at_work(running):
            self.starts.append(time.monotonic() - began)
            for _ in range(kills):
                kind = self._next_kind()
                self._wait_for(self._chance.randint(1, MOST_BEFORE_A_KILL))
                self.kills[kind] += 1
                if kind != ONE_WORKER:
                    return self._kill_main(running, with_workers=kind == WHOLE_SERVER)
                self._kill_a_worker(running)

    def _next_kind(self) -> str:
        """Each as often as the others, in an order of chance."""
        if not self._kinds:
            self._kinds = list(KINDS[self.workers])
            self._chance.shuffle(self._kinds)
        return self._kinds.pop()

    def _wait_for(self, more: int) -> None:
        """Until so many more writes are acknowledged, and for a moment."""
        enough = self.writers.settled + more
        until(lambda: self.writers.settled >= enough)
        time.sleep(self._chance.uniform(0, JITTER_SECONDS))

    def _kill_a_worker(self, running: Running) -> None:
        """And go on once another one is in its place."""
        killed = self._chance.choice(sorted(worker_pids(running.process.pid)))
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(worker_pids(running.process.pid) - {killed}) == self.workers)

    def _kill_main(self, running: Running, *, with_workers: bool) -> None:
        """The main process with the workers, in any order; or it alone: they end by themselves."""
        main = running.process.pid
        os.kill(main, signal.SIGSTOP)  # so that it starts no others
        killed = [main, *sorted(worker_pids(main))] if with_workers else [main]
        self._chance.shuffle(killed)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        running.process.wait()

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
        found = sum(one.taken for one in self.writers.writes)
        return (
            f"{database}, {self.workers} workers, SEED={self.seed}: kills: {kills}; "
            f"{self.writers.settled} writes acknowledged ({found} when asked again), "
            f"{self.stored} stored, {self.writers.cut} requests without an answer; ready after "
            f"{sum(self.starts) / len(self.starts):.1f} s, at most {max(self.starts):.1f} s"
        )


def url_of(database: str, data: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of this kind."""
    if database == "sqlite":
        return f"sqlite:///{data / 'toolgate.db'}"
    return new_database(request.getfixturevalue("postgres_server"), "kills")


def seed() -> int:
    """That of the setting SEED, to do the same again; else a new one."""
    return int(os.environ.get("SEED") or secrets.randbelow(1_000_000))


def none_connected(url: str) -> None:
    """PostgreSQL may still be at work for a client that was killed: wait until it is done."""
    if url.startswith("sqlite"):
        return
    others = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: connection.execute(others).fetchone() == (0,))
