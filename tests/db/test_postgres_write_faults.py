"""Small writes to PostgreSQL where something breaks: nothing is lost, doubled or left in doubt."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from tests.databases import STARTS_A_SERVER
from tests.db.small_writes import CHECK, MANY, Conflict, add, lines, refuse, stored

from toolgate.db.engine import Database
from toolgate.db.postgres_lines import Line, Lines
from toolgate.db.row_writes import RowWrite
from toolgate.db.tables import metadata, write_checks

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]

OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@pytest.fixture
async def database(postgres_database: str) -> AsyncIterator[Database]:
    opened = Database(postgres_database)
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


class HeldStatement:
    """Statements of the line for writes that wait until they may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
        self.came = asyncio.Event()
        self.go_on = asyncio.Event()
        self.times = 0
        asked = Line.rows

        async def rows(line: Line, text: str, values: Sequence[Any]) -> Sequence[Any]:
            result = None if before else await asked(line, text, values)
            self.times += 1
            self.came.set()
            await self.go_on.wait()
            return await asked(line, text, values) if result is None else result

        monkeypatch.setattr(Line, "rows", rows)


async def test_what_comes_during_a_statement_is_in_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldStatement(monkeypatch, before=True)
    first = asyncio.create_task(add(database, "first"))
    await held.came.wait()
    others = [asyncio.create_task(add(database, f"n{one}")) for one in range(MANY)]
    await asyncio.sleep(0)
    held.go_on.set()
    await asyncio.gather(first, *others)
    assert held.times == 2


async def test_one_that_is_withdrawn_before_it_begins_is_not_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldStatement(monkeypatch, before=True)
    first = asyncio.create_task(add(database, "first"))
    await held.came.wait()
    second = asyncio.create_task(add(database, "second"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    held.go_on.set()
    await first
    assert await stored(database) == {"first"}


async def test_one_that_is_cancelled_while_it_is_stored_is_answered_by_what_became_of_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldStatement(monkeypatch, before=False)
    tx = database.transaction()

    async def write_it() -> None:
        async with tx:
            tx.defer(lambda _: None, lambda: [RowWrite(CHECK, [("one",)])])

    task = asyncio.create_task(write_it())
    await held.came.wait()
    task.cancel()
    await asyncio.sleep(0)
    held.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tx.committed
    assert await stored(database) == {"one"}


async def test_a_line_that_the_server_ended_is_replaced(database: Database) -> None:
    await add(database, "first")
    (line,) = lines(database).free
    ended = asyncio.Event()

    def note_end(_: object) -> None:
        ended.set()

    line.connection.add_termination_listener(note_end)
    await database.write(lambda connection: connection.execute(text(OTHERS)))
    await ended.wait()
    assert (await add(database, "second")).committed
    assert await stored(database) == {"first", "second"}


async def test_a_statement_whose_answer_is_lost_is_in_doubt(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Line.rows

    async def lost(line: Line, words: str, values: Sequence[Any]) -> Sequence[Any]:
        await asked(line, words, values)
        raise ConnectionResetError

    monkeypatch.setattr(Line, "rows", lost)
    tx = database.transaction()

    async def write_it() -> None:
        async with tx:
            tx.defer(lambda _: None, lambda: [RowWrite(CHECK, [("one",)])])

    with pytest.raises(OperationalError):
        await write_it()
    assert tx.in_doubt
    assert await stored(database) == {"one"}


async def test_where_no_line_can_be_opened_writes_go_the_usual_way(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_: Lines) -> Line:
        raise ConnectionRefusedError

    monkeypatch.setattr(Lines, "_connect", refused)
    assert (await add(database, "one")).committed
    assert await stored(database) == {"one"}


async def test_a_transaction_with_work_that_is_not_told_as_rows_is_stored_as_a_whole(
    database: Database,
) -> None:
    async def write_both() -> None:
        async with database.transaction() as tx:
            tx.defer(
                lambda connection: connection.execute(write_checks.insert().values(id="a")),
                lambda: [RowWrite(CHECK, [("a",)])],
            )
            tx.defer(refuse)

    with pytest.raises(Conflict):
        await write_both()
    assert await stored(database) == set()
