"""A follower of the change log gets each change that commits, once and in order."""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from tests.databases import STARTS_A_SERVER, upgrade_all
from tests.effort import effort

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction, TransactionState
from toolgate.gate.changes import Position, changes_after
from toolgate.ports.documents import Create, Delete, DocumentExists, Set, Update

pytestmark = pytest.mark.anyio

DOCUMENTS = ("a", "b", "c")
INTERLEAVINGS = effort(30, 1000)
STEPS = 25


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade_all(opened)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres(postgres_database: str) -> AsyncIterator[Database]:
    opened = Database(postgres_database)
    await upgrade_all(opened)
    yield opened
    await opened.close()


class Follower:
    """Reads the log from where it was."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._position = Position()
        self.seen: list[Any] = []

    async def follow(self, limit: int = 100) -> list[Any]:
        """What is new."""
        rows, self._position = await changes_after(self._database, self._position, limit)
        self.seen += rows
        return list(rows)

    async def new(self) -> list[str]:
        return [row.path for row in await self.follow()]


async def put(database: Database, tx: Transaction, id: str, value: int = 0) -> None:
    await SqlDocuments(database, "tests").write(tx, Set("items", id, {"value": value}))


@asynccontextmanager
async def transactions(database: Database, many: int) -> AsyncGenerator[list[Transaction]]:
    """So many at once; what is still open at the end is rolled back, or nothing else could run."""
    made = [database.transaction() for _ in range(many)]
    try:
        yield made
    finally:
        for one in made:
            if one.fate is TransactionState.OPEN:
                await roll_back(one)


async def commit(tx: Transaction) -> None:
    await tx.__aexit__(None, None, None)


async def roll_back(tx: Transaction) -> None:
    tx.abandon()
    await commit(tx)


async def test_every_write_is_logged_with_what_was_there_before_and_after(
    database: Database,
) -> None:
    store = SqlDocuments(database, "tests")
    async with database.transaction() as tx:
        tx.call = "c1"
        await store.write(tx, Create("items", "a", {"n": 1}))
        await store.write(tx, Update("items", "a", {"m": 2}), Set("items/a/parts", "b", {}))
    async with database.transaction() as tx:
        await store.write(tx, Delete("items", "a"), Delete("items", "nothing"))
    rows, _ = await changes_after(database, Position(), 10)
    assert [tuple(row)[2:8] for row in rows] == [
        ("c1", "documents", "tests", "items/a", None, {"n": 1}),
        ("c1", "documents", "tests", "items/a", {"n": 1}, {"n": 1, "m": 2}),
        ("c1", "documents", "tests", "items/a/parts/b", None, {}),
        (None, "documents", "tests", "items/a", {"n": 1, "m": 2}, None),
    ]


async def test_of_writes_that_fail_together_nothing_is_logged(database: Database) -> None:
    store = SqlDocuments(database, "tests")
    async with database.transaction() as tx:
        await store.write(tx, Create("items", "a", {}))
        with pytest.raises(DocumentExists):
            await store.write(tx, Create("items", "b", {}), Create("items", "a", {}))
        await store.write(tx, Create("items", "c", {}))
    assert await Follower(database).new() == ["items/a", "items/c"]


async def test_a_page_goes_on_where_the_last_one_ended(database: Database) -> None:
    follower = Follower(database)
    for id in "abcde":
        async with database.transaction() as tx:
            await put(database, tx, id)
            await put(database, tx, f"{id}2")
    pages = [len(await follower.follow(3)) for _ in range(5)]
    assert pages == [3, 3, 3, 1, 0]
    assert [row.path[6:] for row in follower.seen] == [
        f"{id}{n}" for id in "abcde" for n in ("", 2)
    ]


@STARTS_A_SERVER
async def test_a_change_that_commits_late_with_a_smaller_number_is_not_missed(
    postgres: Database,
) -> None:
    follower = Follower(postgres)
    async with transactions(postgres, 2) as (first, second):
        await put(postgres, first, "first")
        await put(postgres, second, "second")
        await commit(second)
        assert await follower.new() == ["items/second"]
        await commit(first)
    assert await follower.new() == ["items/first"]
    assert [row.seq for row in follower.seen] == [2, 1]
    assert await follower.new() == []


@STARTS_A_SERVER
async def test_a_long_transaction_holds_up_nobody_and_is_not_missed(postgres: Database) -> None:
    follower = Follower(postgres)
    async with transactions(postgres, 4) as (early, long, gone, late):
        await put(postgres, early, "early")
        await put(postgres, long, "long")
        await put(postgres, gone, "gone")
        await put(postgres, late, "late")
        await commit(late)
        await roll_back(gone)
        await commit(early)
        assert await follower.new() == ["items/early", "items/late"]
        await put(postgres, long, "late", 2)
        assert await follower.new() == []
        await commit(long)
    assert await follower.new() == ["items/long", "items/late"]
    assert [row.after["value"] for row in follower.seen] == [0, 0, 0, 2]
    assert await follower.new() == []


@STARTS_A_SERVER
async def test_a_transaction_that_began_first_and_wrote_last_comes_last(postgres: Database) -> None:
    follower = Follower(postgres)
    async with transactions(postgres, 3) as (first, beside, second):
        await put(postgres, first, "x")
        await put(postgres, beside, "y")
        await put(postgres, second, "a", 1)
        await commit(second)
        await put(postgres, first, "a", 2)
        await commit(first)
        assert await follower.new() == ["items/x", "items/a", "items/a"]
        assert [row.after["value"] for row in follower.seen] == [0, 1, 2]
        await commit(beside)
    assert await follower.new() == ["items/y"]


class Interleaving:
    """Transactions that write the same documents, in steps of any order."""

    def __init__(self, database: Database, random: Random, follower: Follower) -> None:
        self.database, self.random, self.follower = database, random, follower
        self.most = 1 if database.dialect == "sqlite" else 4
        self.open: dict[Transaction, list[tuple[str, int]]] = {}
        self.committed: dict[str, list[int]] = defaultdict(list)
        self.written = 0

    async def step(self) -> None:
        match self.random.choice("wwwwwcrf"):
            case "w":
                await self.write()
            case "f":
                await self.follower.follow(self.random.choice([1, 2, 100]))
            case how if self.open:
                await self.end(self.random.choice(list(self.open)), commits=how == "c")
            case _:
                pass

    async def write(self) -> None:
        tx = self.random.choice([*self.open, None])
        if tx is None and len(self.open) < self.most:
            self.open[tx := self.database.transaction()] = []
        id = self.random.choice(DOCUMENTS)
        locked = {one for other in self.open if other is not tx for one, _ in self.open[other]}
        if tx is None or id in locked:
            return
        self.written += 1
        await put(self.database, tx, id, self.written)
        self.open[tx].append((id, self.written))

    async def end(self, tx: Transaction, *, commits: bool) -> None:
        written = self.open.pop(tx)
        await (commit if commits else roll_back)(tx)
        for id, value in written if commits else ():
            self.committed[id].append(value)


async def test_however_transactions_interleave_a_follower_sees_each_commit_once_and_in_order(
    database: Database,
) -> None:
    follower = Follower(database)
    for seed in range(INTERLEAVINGS):
        follower.seen.clear()
        run = Interleaving(database, Random(seed), follower)
        for _ in range(STEPS):
            await run.step()
        for tx in list(run.open):
            await run.end(tx, commits=run.random.random() < 0.5)
        while await follower.follow(7):
            pass
        seen: dict[str, list[int]] = defaultdict(list)
        states: dict[str, Any] = {}
        for row in follower.seen:
            seen[row.path[-1]].append(row.after["value"])
            assert row.before == states.get(row.path, row.before), seed
            states[row.path] = row.after
        assert seen == run.committed, seed
