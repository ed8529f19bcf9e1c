"""Writes of the embedded database that come together share a commit, and nothing else."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import OperationalError
from tests.patience import PATIENT

from toolgate.db import grouped_writes
from toolgate.db.engine import Database
from toolgate.db.tables import metadata, write_checks
from toolgate.db.threads import ThreadsClosed
from toolgate.db.transactions import Transaction

pytestmark = pytest.mark.anyio

MANY = 40


class Refused(Exception):
    """What a write raises that must not be stored."""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'grouped.db'}")
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


class HeldCommit:
    """Commits that wait until they may go on; what has come to them is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came = asyncio.Event()
        self.groups: list[int] = []
        self._go_on = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._commit = grouped_writes.commit_group
        monkeypatch.setattr(grouped_writes, "commit_group", self._held)

    def _held(self, connection: Connection, writes: Sequence[Any]) -> None:
        self.groups.append(len(writes))
        self._loop.call_soon_threadsafe(self.came.set)
        assert self._go_on.wait(PATIENT)
        self._commit(connection, writes)

    def go_on(self) -> None:
        self._go_on.set()


@pytest.fixture
async def held(monkeypatch: pytest.MonkeyPatch) -> HeldCommit:
    return HeldCommit(monkeypatch)


def adding(name: str) -> Callable[[Connection], None]:
    def add(connection: Connection) -> None:
        connection.execute(insert(write_checks), [{"id": name}])

    return add


def refuse(_: Connection) -> None:
    raise Refused


async def add(database: Database, name: str, *more: Callable[[Connection], None]) -> Transaction:
    async with database.transaction() as tx:
        for work in (adding(name), *more):
            tx.defer(work)
    return tx


async def stored(database: Database) -> set[str]:
    names = select(write_checks.c.id)
    return set(await database.read(lambda connection: connection.scalars(names).all()))


async def test_writes_that_come_together_share_a_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    commit = grouped_writes.commit_group

    def counted(connection: Connection, writes: Sequence[Any]) -> None:
        commits.append(len(writes))
        commit(connection, writes)

    monkeypatch.setattr(grouped_writes, "commit_group", counted)
    made = await asyncio.gather(*(add(database, f"n{one}") for one in range(MANY)))
    assert all(one.committed for one in made)
    assert await stored(database) == {f"n{one}" for one in range(MANY)}
    assert commits == [MANY]


async def test_what_comes_during_a_commit_is_in_the_next(
    database: Database, held: HeldCommit
) -> None:
    first = asyncio.create_task(add(database, "first"))
    await held.came.wait()
    others = [asyncio.create_task(add(database, f"n{one}")) for one in range(MANY)]
    await asyncio.sleep(0)
    held.go_on()
    await asyncio.gather(first, *others)
    assert held.groups == [1, MANY]


async def test_nothing_is_answered_before_the_commit_that_holds_it(
    database: Database, held: HeldCommit
) -> None:
    write = asyncio.create_task(add(database, "one"))
    await held.came.wait()
    assert not write.done()
    assert await stored(database) == set()
    held.go_on()
    assert (await write).committed
    assert await stored(database) == {"one"}


async def test_one_that_fails_undoes_only_itself(database: Database) -> None:
    writes = [add(database, "a"), add(database, "b", refuse), add(database, "c")]
    made = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(made[1], Refused)
    assert await stored(database) == {"a", "c"}


async def test_one_that_is_withdrawn_before_it_begins_is_not_stored(
    database: Database, held: HeldCommit
) -> None:
    first = asyncio.create_task(add(database, "first"))
    await held.came.wait()
    second = asyncio.create_task(add(database, "second"))
    await asyncio.sleep(0)
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second
    held.go_on()
    await first
    await add(database, "third")
    assert await stored(database) == {"first", "third"}


async def test_one_that_is_cancelled_in_its_commit_knows_that_it_is_stored(
    database: Database, held: HeldCommit
) -> None:
    seen: list[Transaction] = []

    async def write() -> None:
        async with database.transaction() as tx:
            seen.append(tx)
            tx.defer(adding("one"))

    task = asyncio.create_task(write())
    await held.came.wait()
    task.cancel()
    held.go_on()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen[0].committed
    assert await stored(database) == {"one"}


async def test_a_commit_that_fails_fails_every_write_in_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(connection: Connection) -> None:
        raise OperationalError("COMMIT", None, Exception("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", full)
        made = await asyncio.gather(add(database, "a"), add(database, "b"), return_exceptions=True)
    assert [type(one) for one in made] == [OperationalError, OperationalError]
    assert await stored(database) == set()
    await add(database, "later")
    assert await stored(database) == {"later"}


async def test_work_that_runs_at_once_sees_what_was_deferred_before_it(database: Database) -> None:
    async with database.transaction() as tx:
        tx.defer(adding("deferred"))
        seen = await tx.run(lambda c: set(c.scalars(select(write_checks.c.id))))
        tx.defer(adding("later"))
    assert seen == {"deferred"}
    assert await stored(database) == {"deferred", "later"}


async def test_a_part_of_what_was_deferred_is_never_stored_nor_passed_over(
    database: Database,
) -> None:
    tx = database.transaction()
    tx.defer(adding("a"))
    tx.defer(refuse)
    with suppress(Refused):
        await tx.run(lambda _: None)
    with pytest.raises(Refused):
        await tx.__aexit__(None, None, None)
    assert not tx.committed
    assert await stored(database) == set()


async def dry_run(database: Database, *works: Callable[[Connection], None]) -> None:
    async with database.transaction() as tx:
        for work in works:
            tx.defer(work)
        tx.abandon()


async def test_a_dry_run_does_what_was_deferred_and_takes_it_back(database: Database) -> None:
    done: list[str] = []
    await dry_run(database, adding("a"), lambda _: done.append("b"))
    assert done == ["b"]
    assert await stored(database) == set()
    with pytest.raises(Refused):
        await dry_run(database, refuse)


async def test_a_dry_run_does_what_was_deferred_after_something_ran(database: Database) -> None:
    done: list[str] = []
    async with database.transaction() as tx:
        await tx.run(adding("a"))
        tx.defer(lambda _: done.append("b"))
        tx.abandon()
    assert done == ["b"]
    assert await stored(database) == set()


async def test_what_the_database_has_undone_as_a_whole_is_known_not_to_be_stored(
    database: Database,
) -> None:
    def lose_everything(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        driver.execute("ROLLBACK")  # as SQLite does by itself where the disk is full
        raise Refused

    txs = [database.transaction() for _ in range(3)]

    async def write(tx: Transaction, work: Callable[[Connection], None]) -> None:
        async with tx:
            tx.defer(work)

    works = [adding("a"), lose_everything, adding("c")]
    made = await asyncio.gather(*map(write, txs, works), return_exceptions=True)
    assert all(isinstance(one, Refused) for one in made)
    assert not any(one.committed or one.in_doubt for one in txs)
    assert await stored(database) == set()


async def test_an_error_in_the_block_leaves_out_what_was_deferred(database: Database) -> None:
    tx = database.transaction()
    with suppress(Refused):
        async with tx:
            tx.defer(adding("a"))
            raise Refused
    assert not tx.committed
    assert await stored(database) == set()


async def test_writers_of_both_kinds_take_turns(database: Database) -> None:
    async def at_once(name: str) -> None:
        async with database.transaction() as tx:
            await tx.run(adding(name))
            await asyncio.sleep(0)

    await asyncio.gather(
        *(add(database, f"d{one}") if one % 2 else at_once(f"r{one}") for one in range(MANY))
    )
    assert len(await stored(database)) == MANY


async def test_a_database_that_is_closed_stores_nothing_that_waits(
    database: Database, held: HeldCommit
) -> None:
    first = asyncio.create_task(add(database, "first"))
    await held.came.wait()
    waiting = asyncio.create_task(add(database, "waiting"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(database.close())
    with pytest.raises(ThreadsClosed):
        await waiting
    held.go_on()
    await closing
    assert (await first).committed
