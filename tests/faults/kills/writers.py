"""Sixteen clients that write as fast as they are answered, and remember what they were told."""

import http.client
import random
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.faults.kills import ledger
from tests.faults.server import Answer, Running, ask, named
from tests.patience import PATIENT
from tests.servers import pause

from toolgate import packs

WRITERS = 16
NOT_CONFIRMED = "may or may not be stored"
CREATE, PROJECT = "create_document", "operator.project.create"
ENTER, COUNT, CHANGE = "ledger.enter", "ledger.count", "ledger.change"
WRITING = (CREATE, PROJECT, ENTER, COUNT, CHANGE)
PACKS = [*packs.SHIPPED, ledger.NAME]
EVERYBODYS = "everybodys"
"""The counter that all writers count with."""

Path = tuple[str, str]
"""The namespace of a document, and its collection and id."""


@dataclass
class Write:
    """One write, as often as it was tried, and what its writer knows of it."""

    name: str
    tool: str
    arguments: dict[str, Any]
    created: dict[Path, dict[str, Any]] = field(default_factory=dict[Path, dict[str, Any]])
    """The documents that it makes."""
    changed: list[Path] = field(default_factory=list[Path])
    """Those that it changes or deletes."""
    repeatable: bool = True
    """Whether a second one would be refused."""
    tried: list[str] = field(default_factory=list[str])
    """The ids of its requests."""
    acknowledged: str | None = None
    """The request whose answer said that it is stored."""
    refused: list[str] = field(default_factory=list[str])
    """The requests whose answers said that they stored nothing."""
    taken: bool = False
    """Whether a second request was told that the first one had stored it."""

    @property
    def paths(self) -> list[Path]:
        """Every document that it touches, once."""
        return sorted([*self.created, *self.changed])

    def request_id(self) -> str:
        """A new one for each try."""
        self.tried.append(f"{self.name}.{len(self.tried) + 1}")
        return self.tried[-1]

    def told(self, answer: Answer) -> None:
        """Learn from the answer to the last request."""
        if answer.status == 200:
            self.acknowledged = self.tried[-1]
            return
        if NOT_CONFIRMED not in answer.text:
            self.refused.append(self.tried[-1])
        self.taken = answer.status == 409 and len(self.tried) > 1

    @property
    def settled(self) -> bool:
        return bool(self.acknowledged) or self.taken


class Writer:
    """One client: one write after the other, on one connection as long as that lasts."""

    def __init__(
        self, number: int, chance: random.Random, when_settled: Callable[[], None]
    ) -> None:
        self.number = number
        self.writes: list[Write] = []
        self.answers: list[Answer] = []
        """Those that said no, but for what was stored before."""
        self.cut = 0
        """How many requests had no answer."""
        self._chance = chance
        self._when_settled = when_settled
        self._entry: str | None = None

    def work(self, running: Running, stopping: threading.Event) -> None:
        """Write until told to stop, or until the server's process has ended."""
        with closing(running.connection()) as connection:
            while not stopping.is_set():
                write = self._next()
                try:
                    answer = self._send(connection, write)
                except (OSError, http.client.HTTPException):
                    self.cut += 1
                    connection.close()
                    if running.process.poll() is not None:
                        return
                    pause()
                    continue
                self._learn(write, answer)

    def _learn(self, write: Write, answer: Answer) -> None:
        write.told(answer)
        if not write.settled:
            self.answers.append(answer)
            return
        self._when_settled()
        if write.tool == ENTER:
            self._entry = write.name

    def _send(self, connection: http.client.HTTPConnection, write: Write) -> Answer:
        path = f"/v1/tools/{write.tool}"
        return ask(connection, "POST", path, write.arguments, **named(write.request_id()))

    def _next(self) -> Write:
        """The last write again, if its fate is unknown and that can be found out; or a new one."""
        last = self.writes[-1] if self.writes else None
        if last is not None and last.repeatable and not last.settled:
            return last
        self.writes.append(self._new(f"w{self.number}-{len(self.writes)}"))
        return self.writes[-1]

    def _new(self, name: str) -> Write:
        kinds = [self._document] * 8 + [self._ledger_entry] * 3 + [self._change] * 4 + [self._count]
        if "orchestrator" in packs.SHIPPED:
            kinds.append(self._project)
        return self._chance.choice(kinds)(name)

    def _document(self, name: str) -> Write:
        number = len(self.writes)
        fields = {"by": name, "number": number, "tags": [f"w{self.number}", number % 7, None]}
        fields |= {"place": {"writer": self.number, "share": number / 3}}
        arguments = {"collection": "apps", "document_id": name, "data": fields}
        return Write(name, CREATE, arguments, {("appdata", f"apps/{name}"): fields})

    def _ledger_entry(self, name: str) -> Write:
        """It may take the place of the one before."""
        counter = self._counter()
        replaced = self._entry if self._chance.random() < 0.5 else None
        arguments = {"name": name, "counter": counter, "instead_of": replaced}
        changed = [_ledger(ledger.COUNTERS, counter)]
        if replaced is not None:
            changed.append(_ledger(ledger.ENTRIES, replaced))
            self._entry = None
        created = {_ledger(ledger.ENTRIES, name): ledger.entry_of(name)}
        return Write(name, ENTER, arguments, created, changed)

    def _change(self, name: str) -> Write:
        """Another number of a counter, or another state of the last entry."""
        entry = self._entry
        kind = self._chance.choice(["add", "revise", "replace", "remove"] if entry else ["add"])
        if kind == "add" or entry is None:
            id = self._counter()
            changed = _ledger(ledger.COUNTERS, id)
        else:
            id, changed = entry, _ledger(ledger.ENTRIES, entry)
            self._entry = None if kind == "remove" else entry
        arguments = {"kind": kind, "id": id, "note": name}
        return Write(name, CHANGE, arguments, {}, [changed], repeatable=False)

    def _counter(self) -> str:
        """The writer's own, or everybody's."""
        return self._chance.choice([f"of-w{self.number}", EVERYBODYS])

    def _count(self, name: str) -> Write:
        changed = [_ledger(ledger.COUNTERS, EVERYBODYS)]
        return Write(name, COUNT, {"counter": EVERYBODYS}, {}, changed, repeatable=False)

    def _project(self, name: str) -> Write:
        return Write(name, PROJECT, {"slug": name, "display_name": name})


def _ledger(collection: str, id: str) -> Path:
    return ledger.NAME, f"{collection}/{id}"


class Writers:
    """All of them, from one server on the same data to the next."""

    def __init__(self, chance: random.Random) -> None:
        self.settled = 0
        """How many writes are known to be stored."""
        self._lock = threading.Lock()
        self._awaited: tuple[int, Callable[[], object], Future[object]] | None = None
        self.each = [
            Writer(number, random.Random(chance.random()), self._count) for number in range(WRITERS)
        ]

    def at(self, more: int, act: Callable[[], object]) -> None:
        """Act at the moment at which so many more writes are acknowledged, and return then."""
        done = Future[object]()
        with self._lock:
            self._awaited = self.settled + more, act, done
        done.result(PATIENT)

    def _count(self) -> None:
        with self._lock:
            self.settled += 1
            if self._awaited is None or self._awaited[0] > self.settled:
                return
            (_, act, done), self._awaited = self._awaited, None
        try:
            done.set_result(act())
        except Exception as problem:
            done.set_exception(problem)

    @contextmanager
    def at_work(self, running: Running) -> Generator[None]:
        """They write within the block, and are done at its end."""
        stopping = threading.Event()
        threads = [threading.Thread(target=one.work, args=[running, stopping]) for one in self.each]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    @property
    def writes(self) -> list[Write]:
        return [write for one in self.each for write in one.writes]

    @property
    def cut(self) -> int:
        """How many requests had no answer."""
        return sum(one.cut for one in self.each)

    @property
    def answers(self) -> list[Answer]:
        """The answers that said no."""
        return [answer for one in self.each for answer in one.answers]
