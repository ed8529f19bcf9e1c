"""A record of PostgreSQL that others hold: who waits for it, and who does not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import OperationalError
from tests.databases import STARTS_A_SERVER
from tests.patience import PATIENT
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db import held_records, postgres_writes
from toolgate.db.connections import POOL
from toolgate.db.engine import OWN_TURNS, Database
from toolgate.db.held_records import WrittenRecord
from toolgate.db.postgres_lines import Line
from toolgate.db.tables import documents, metadata, write_checks
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import Create, Update, Write
from toolgate.ports.transforms import Increment

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]

MANY = 30
HOLD = update(documents).where(documents.c.id == "held").values(namespace="n")
STOPPED_SOON = "SET statement_timeout = '50ms'"
"""In the place of the limit for locks."""


class Conflict(Exception):
    """What a tool answers where a document is in another state."""


@pytest.fixture
async def database(postgres_database: str) -> AsyncIterator[Database]:
    opened = Database(postgres_database)
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


@pytest.fixture
async def store(database: Database) -> SqlDocuments:
    made = SqlDocuments(database, "n")
    await write(made, Create("c", "held", {"n": 0}))
    return made


def hold(connection: Connection) -> None:
    connection.execute(HOLD)


async def write(store: SqlDocuments, one: Write) -> Transaction:
    async with store.database.transaction() as tx:
        await store.write(tx, one, conflict=Conflict())
    return tx


class Noted:
    """How many statements went over the line for writes, and who went the usual way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, wanted: int) -> None:
        self.statements = self.queued = self.usual = 0
        self.all_there = asyncio.Event()
        asked, in_turn = Line.rows, WrittenRecord.in_turn
        store = Transaction._store_the_usual_way  # pyright: ignore[reportPrivateUsage]

        async def rows(line: Line, text: str, values: Sequence[Any]) -> Sequence[Any]:
            self.statements += 1
            return await asked(line, text, values)

        def noted_turn(record: WrittenRecord) -> Any:
            self.queued += 1
            if self.queued == wanted:
                self.all_there.set()
            return in_turn(record)

        async def usual(tx: Transaction, *, commit: bool) -> None:
            self.usual += 1
            await store(tx, commit=commit)

        monkeypatch.setattr(Line, "rows", rows)
        monkeypatch.setattr(WrittenRecord, "in_turn", noted_turn)
        monkeypatch.setattr(Transaction, "_store_the_usual_way", usual)


async def test_one_waits_for_a_held_record_in_the_database_and_the_others_behind_it(
    database: Database, store: SqlDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Noted(monkeypatch, MANY)
    raised = Update("c", "held", {"n": Increment(1)})
    with noted_statements() as statements:
        async with database.transaction() as holding:
            await holding.run(hold)
            waiting = [asyncio.create_task(write(store, raised)) for _ in range(MANY)]
            await noted.all_there.wait()
            await asyncio.sleep(0)
            assert (noted.statements, noted.usual) == (1, 1)
            assert (await write(store, Create("c", "other", {}))).committed
            assert (noted.statements, noted.usual) == (2, 1)
        assert all(one.committed for one in await asyncio.gather(*waiting))
    assert await store.get("c", "held") == {"n": MANY}
    assert statements.count(f"SET LOCAL lock_timeout = {1000 * database.patience:.0f}") == MANY
    before = noted.usual
    assert (await write(store, raised)).committed
    assert noted.usual == before, "nobody holds it any more"


async def test_who_waits_for_a_record_in_the_database_gives_up(
    database: Database, store: SqlDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_records, "BOUND", "SET LOCAL lock_timeout = 50")
    async with database.transaction() as holding:
        await holding.run(hold)
        wanted = [write(store, Update("c", "held", {"n": one})) for one in range(3)]
        made = await asyncio.gather(*wanted, return_exceptions=True)
    for one in made:
        assert isinstance(one, OperationalError)
        assert "lock timeout" in str(one)
    assert await store.get("c", "held") == {"n": 0}
    assert (await write(store, Update("c", "held", {"n": 5}))).committed


async def test_who_is_cancelled_leaves_a_held_record_to_the_next(
    database: Database, store: SqlDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Noted(monkeypatch, 3)
    async with database.transaction() as holding:
        await holding.run(hold)
        wanted = [write(store, Update("c", "held", {"n": one})) for one in range(3)]
        first, second, third = [asyncio.create_task(one) for one in wanted]
        await noted.all_there.wait()
        second.cancel()
        first.cancel()
        await asyncio.wait([first, second])
    assert first.cancelled()
    assert second.cancelled()
    assert (await third).committed
    assert await store.get("c", "held") == {"n": 2}


async def test_a_statement_that_the_server_stopped_stored_nothing_and_goes_the_usual_way(
    postgres_database: str, store: SqlDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writes, "WAIT_FOR_ROWS", STOPPED_SOON)
    database = Database(postgres_database)
    noted = Noted(monkeypatch, 1)
    try:
        async with database.transaction() as holding:
            await holding.run(hold)
            change = Update("c", "held", {"n": Increment(1)})
            waiting = asyncio.create_task(write(SqlDocuments(database, "n"), change))
            await asyncio.wait(
                [waiting, asyncio.create_task(noted.all_there.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
        assert (await waiting).committed
    finally:
        await database.close()
    assert await store.get("c", "held") == {"n": 1}


async def test_the_gate_writes_also_where_calls_have_every_turn_and_thread(
    database: Database,
) -> None:
    go_on, held = threading.Event(), threading.Semaphore(0)

    def wait(connection: Connection) -> None:
        connection.execute(select(1))
        held.release()
        go_on.wait()

    async def hold_a_turn() -> None:
        async with database.transaction() as tx:
            await tx.run(wait)

    turns = 2 * POOL - OWN_TURNS
    writers = [asyncio.create_task(hold_a_turn()) for _ in range(turns + 5)]
    readers = [asyncio.create_task(database.read(wait)) for _ in range(4 * POOL)]
    try:
        for _ in range(turns + 2 * POOL):
            await asyncio.to_thread(held.acquire)
        row = write_checks.insert().values(id="row")
        async with asyncio.timeout(PATIENT):
            for _ in range(OWN_TURNS + 1):
                await database.write(lambda connection: connection.execute(write_checks.delete()))
                await database.write(lambda connection: connection.execute(row))
        assert not any(one.done() for one in [*writers, *readers])
    finally:
        go_on.set()
        await asyncio.gather(*writers, *readers)
    count = select(func.count()).select_from(write_checks)
    assert await database.read(lambda connection: connection.scalar(count)) == 1
