"""What must not grow with what is stored: calls among a thousand and among a million documents.

python -m bench store

Tools through the whole gate, and the tree's store, which no tool has yet, both in this process.
The small and the large database are asked in turn, each call for another document. CPU is that of
this process; the database server's is counted by itself.
"""

import asyncio
import os
import random
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from bench import cpu, report, store_data
from bench.data import FILE
from bench.facts import facts
from bench.generator import percentile
from bench.installing import CACHE
from bench.jobs import Measured, new_id
from bench.postgres import Postgres, postgres
from bench.racing import better, tell
from bench.store_data import COLLECTION, FOUND, NAMESPACE
from bench.table import Book
from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.tree import SqlTree
from toolgate.db.schemas import GATE
from toolgate.ports.documents import Delete
from toolgate.ports.tree import SetValue
from toolgate.testing import Kit, opened_kit

FEW, MANY = 1_000, 1_000_000
AT_ONCE, BATCH = 16, 100
QUERY_BOUND, GROWTH = 2.0, 1.5
MEMORY = "2GB"
"""Of PostgreSQL: room for a million documents, a quarter of what a server for them would have."""

Ask = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Side:
    """One database, with so many documents and leaves."""

    kit: Kit
    count: int
    beside: tuple[int, ...]
    made: list[str]
    """Ids of documents that calls have added."""

    @property
    def tree(self) -> SqlTree:
        return SqlTree(self.kit.app.gate.database, NAMESPACE)

    async def query(self) -> None:
        """Find the documents of one user."""
        wanted = store_data.user(random.randrange(self.count), self.count)
        one = {"field": "userId", "operator": "==", "value": wanted}
        asked = {"collection": COLLECTION, "filters": [one], "limit": FOUND}
        outcome = await self.kit.send("query_collection", asked)
        if b'"count":%d,' % FOUND not in outcome.raw:
            raise RuntimeError(f"not {FOUND} documents: {outcome.raw[:300]!r}")

    async def create(self) -> None:
        """Make a document; of a user who has none, so that the others keep theirs."""
        fields = store_data.fields_of(random.randrange(self.count), self.count)
        id, data = new_id().decode(), fields | {"userId": f"new-{fields['userId']}"}
        asked = {"collection": COLLECTION, "document_id": id, "data": data}
        outcome = await self.kit.send("create_document", asked)
        if outcome.error is not None:
            raise RuntimeError(outcome.text)
        self.made.append(id)

    async def remove_made(self) -> None:
        """Be as large as before."""
        database = self.kit.app.gate.database
        while some := [Delete(COLLECTION, id) for id in self.made[:BATCH]]:
            async with database.transaction() as tx:
                await SqlDocuments(database, NAMESPACE).write(tx, *some)
            del self.made[:BATCH]

    async def read_leaf(self) -> None:
        if await self.tree.get(self._leaf()) is None:
            raise RuntimeError("no such leaf")

    async def write_leaf(self) -> None:
        async with self.kit.app.gate.database.transaction() as tx:
            await self.tree.write(tx, SetValue(self._leaf(), random.randrange(1_000_000)))

    def _leaf(self) -> str:
        return store_data.leaf(random.randrange(self.count))


@dataclass(frozen=True, slots=True)
class Line:
    """What is asked, and how much more it may cost among many."""

    what: str
    ask: Callable[[Side], Ask]
    calls: int
    bound: float
    at_once: int = 1


LINES = (
    Line(f"query_collection, {FOUND} results", lambda side: side.query, 300, QUERY_BOUND),
    Line("create_document", lambda side: side.create, 200, GROWTH),
    Line(f"create_document, {AT_ONCE} at once", lambda side: side.create, 800, GROWTH, AT_ONCE),
    Line("a child of a tree, read", lambda side: side.read_leaf, 500, GROWTH),
    Line("a child of a tree, written", lambda side: side.write_leaf, 200, GROWTH),
)


def main(rounds: int, many: int, without: list[str]) -> None:
    """Print the tables."""
    book = Book()
    anyio.run(_compare, book, "SQLite", many, None, rounds)
    if "postgresql" not in without:
        with _kept_postgres(many) as server:
            anyio.run(_compare, book, "PostgreSQL", many, server, rounds)
    print(report.printed(book, facts("make bench-store")))


async def _compare(book: Book, kind: str, many: int, server: Postgres | None, rounds: int) -> None:
    async with _opened(FEW, server) as few, _opened(many, server) as large:
        sides = {f"{one.count:,} there": one for one in (few, large)}
        for line in LINES:
            tell(f"{kind}: {line.what}")
            found = await _race(line, sides, rounds)
            asked = f"{kind}: {line.what}"
            book.note(asked, found)
            less, more = found.values()
            what = f"{asked}, among {many:,} / {FEW:,}"
            book.times(f"{what}: time", _time(line, more), _time(line, less), line.bound)
            book.cpu(f"{what}: CPU", _whole(more), _whole(less), line.bound)


def _time(line: Line, one: Measured) -> float:
    """Of one call; of many at once, how long after each the next one ends."""
    return one.p50 if line.at_once == 1 else 1e6 / one.per_second


async def _race(line: Line, sides: dict[str, Side], rounds: int) -> dict[str, Measured]:
    best: dict[str, Measured] = {}
    for number in range(rounds + 1):
        for name, side in sides.items():
            now = await _measured(line, side)
            if number == 0:  # warming up
                continue
            tell(
                f"  round {number}: {name:16} {now.cpu:8.1f} µs CPU a call  (database "
                f"{now.beside:.0f} µs)  p50 {now.p50:8.1f} µs  {now.per_second:8.0f}/s"
            )
            best[name] = better(best[name], now) if name in best else now
    return best


async def _measured(line: Line, side: Side) -> Measured:
    ask, flush = line.ask(side), side.kit.app.gate.audit.flush
    lasted: list[int] = []

    async def caller() -> None:
        for _ in range(line.calls // line.at_once):
            began = time.perf_counter_ns()
            await ask()
            lasted.append(time.perf_counter_ns() - began)

    await flush()
    before, beside = cpu.spent([os.getpid()]), cpu.spent(side.beside)
    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(line.at_once)))
    took = time.perf_counter() - began
    await flush()
    used = cpu.between(before, {one: cpu.of_process(one) for one in before})
    beside_used = cpu.between(beside, cpu.spent(side.beside))
    await side.remove_made()
    count = len(lasted)
    return Measured(
        calls=count,
        per_second=count / took,
        cpu=used / count / 1e3,
        p50=percentile(lasted, 0.50),
        p99=percentile(lasted, 0.99),
        own_cpu=0,
        beside=beside_used / count / 1e3,
    )


def _whole(one: Measured) -> Measured:
    """With the database server's CPU."""
    return replace(one, cpu=one.cpu + one.beside)


@asynccontextmanager
async def _opened(count: int, server: Postgres | None) -> AsyncGenerator[Side]:
    """A gate on a database with so many documents and leaves."""
    with tempfile.TemporaryDirectory() as folder:
        if server is None:
            file = await _kept_sqlite(count)
            url, beside = f"sqlite:///{file}", ()
        else:
            url, beside = server.address(_name(count)), (server.pid,)
        async with opened_kit(Path(folder), writes=True, database__url=url) as kit:
            yield Side(kit, count, beside, [])


async def _kept_sqlite(count: int) -> Path:
    """A filled file, made once."""
    folder = CACHE / f"{_name(count)}-{GATE.newest}"
    file, filled = folder / FILE, folder / "filled"
    if not filled.exists():
        tell(f"preparing {count:,} documents and leaves in SQLite, once")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        await _make_tables(folder, f"sqlite:///{file}")
        store_data.fill_sqlite(file, count)
        filled.touch()
    return file


@contextmanager
def _kept_postgres(many: int) -> Iterator[Postgres]:
    """A server with filled databases, made once."""
    folder = CACHE / f"postgres-{_name(many)}-{GATE.newest}"
    filled = folder.with_name(f"{folder.name}-filled")
    if not filled.exists():
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not filled.exists():
        with postgres(folder) as server:
            _fill_postgres(server, (FEW, many))
        filled.touch()
    with postgres(folder) as server:
        for count in (FEW, many):
            store_data.read_into_memory(server.address(_name(count)))
        yield server


def _fill_postgres(server: Postgres, counts: tuple[int, ...]) -> None:
    for count in counts:
        tell(f"preparing {count:,} documents and leaves in PostgreSQL, once")
        url = server.new_database(_name(count))
        with tempfile.TemporaryDirectory() as place:
            anyio.run(_make_tables, Path(place), url)
        store_data.fill_postgres(url, count)
    server.set_memory(MEMORY)


async def _make_tables(folder: Path, url: str) -> None:
    async with opened_kit(folder, database__url=url):
        pass


def _name(count: int) -> str:
    return f"documents_{count}"
