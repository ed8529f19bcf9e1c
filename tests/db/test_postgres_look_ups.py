"""Look-ups in PostgreSQL over connections of their own: the same answers, whatever breaks."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from asyncpg import connect_utils  # pyright: ignore[reportMissingTypeStubs]
from sqlalchemy import Connection, bindparam, insert, make_url, select, text
from tests.databases import STARTS_A_SERVER
from tests.statements import noted_statements

from toolgate.db import postgres_lines
from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.postgres_lines import LINES, Line, Lines, is_understood
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import documents, keys, metadata

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]

ONE = PreparedStatement(
    select(documents.c.id, documents.c.fields).where(documents.c.id == bindparam("id"))
)
KEY = PreparedStatement(select(keys.c.id).where(keys.c.id == bindparam("id")))
OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@pytest.fixture
async def database(postgres_database: str) -> AsyncIterator[Database]:
    opened = Database(postgres_database)
    await opened.write(metadata.create_all)
    rows = [
        {"namespace": "n", "collection": "c", "id": f"d{number}", "fields": {"is": [number]}}
        for number in range(20)
    ]
    await opened.write(lambda connection: connection.execute(insert(documents), rows))
    yield opened
    await opened.close()


def lines(database: Database) -> Lines:
    short = database.postgres_reads
    assert short is not None
    return short.look_ups


async def fields(database: Database, number: int) -> Any:
    row = await database.look_up(ONE, {"id": f"d{number}"})
    assert row.id == f"d{number}"
    return row.fields


async def test_documents_that_others_hold_keep_nobody_from_looking_up_a_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, asked, first = asyncio.Event(), 0, Line.first

    async def noted(self: Line, *given: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == LINES:
            held.set()
        return await first(self, *given)

    monkeypatch.setattr(Line, "first", noted)
    async with database.transaction() as tx:
        await tx.run(lambda connection: connection.execute(text("LOCK TABLE documents")))
        wanted = [database.look_up(ONE, {"id": "d1"}, of_data=True) for _ in range(3 * LINES)]
        waiting = [asyncio.create_task(one) for one in wanted]
        await held.wait()
        assert await database.look_up(KEY, {"id": "none"}) is None
        assert not any(one.done() for one in waiting)
    assert {row.id for row in await asyncio.gather(*waiting)} == {"d1"}


async def test_a_look_up_is_one_statement_and_one_row(database: Database) -> None:
    with noted_statements() as statements:
        assert await fields(database, 3) == {"is": [3]}
    assert len(statements) == 1
    assert await database.look_up(ONE, {"id": "none"}) is None
    assert lines(database).open == 1


async def test_many_at_once_share_a_few_connections(database: Database) -> None:
    found = await asyncio.gather(*(fields(database, number % 20) for number in range(200)))
    assert found == [{"is": [number % 20]} for number in range(200)]
    assert lines(database).open == LINES


async def test_the_server_prepares_a_statement_once_and_keeps_few(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_lines, "MAX_PREPARED", 2)
    for number in range(10):
        await fields(database, number)
    line = lines(database).free[0]
    every = "SELECT statement FROM pg_prepared_statements ORDER BY prepare_time"
    [kept] = await line.connection.fetch(every)
    assert "FROM documents" in kept[0]
    for number in range(4):
        assert await line.rows(f"SELECT {number} AS number", []) == [(number,)]
    kept = [row[0] for row in await line.connection.fetch(every)]
    assert kept[-1] == "SELECT 3 AS number"
    assert len(kept) <= 3  # one that is forgotten is closed when the next is prepared


async def test_connections_that_the_server_ended_are_replaced(database: Database) -> None:
    await asyncio.gather(*(fields(database, number) for number in range(20)))
    await database.write(lambda connection: connection.execute(text(OURS)).all())
    assert await fields(database, 5) == {"is": [5]}
    found = await asyncio.gather(*(fields(database, number) for number in range(20)))
    assert found == [{"is": [number]} for number in range(20)]


async def test_a_table_that_changes_is_read_as_it_is(database: Database) -> None:
    assert await fields(database, 1) == {"is": [1]}
    change = "ALTER TABLE documents ALTER COLUMN fields TYPE jsonb USING fields::jsonb"
    back = "ALTER TABLE documents ALTER COLUMN fields TYPE json USING fields::json"
    for statement in (change, back):
        await database.write(lambda c, statement=statement: c.execute(text(statement)))
        assert await fields(database, 1) in ({"is": [1]}, '{"is": [1]}')
    assert await fields(database, 1) == {"is": [1]}


async def test_who_is_cancelled_leaves_nobody_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = asyncio.Event()
    first = Line.first

    async def noted(self: Line, statement: str, values: Sequence[Any]) -> Any:
        if values == ("slow",):
            began.set()
            return await self.connection.fetchrow("SELECT pg_sleep(600)")
        return await first(self, statement, values)

    async def another(*_: Any) -> None:
        pytest.fail("a connection is opened only to cancel")

    monkeypatch.setattr(connect_utils, "_cancel", another)
    monkeypatch.setattr(Line, "first", noted)
    slow = asyncio.create_task(database.look_up(ONE, {"id": "slow"}))
    await began.wait()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert lines(database).open == 0
    found = await asyncio.gather(*(fields(database, number) for number in range(20)))
    assert found == [{"is": [number]} for number in range(20)]


async def test_who_waits_for_a_connection_and_gives_up_does_not_hold_up_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, go_on, first = asyncio.Event(), asyncio.Event(), Line.first
    begun: list[str] = []

    async def waiting(self: Line, statement: str, values: Sequence[Any]) -> Any:
        begun.append(values[0])
        if len(begun) == LINES:
            held.set()
        await go_on.wait()
        return await first(self, statement, values)

    monkeypatch.setattr(Line, "first", waiting)
    tasks = [asyncio.create_task(fields(database, number)) for number in range(LINES + 3)]
    await held.wait()
    tasks[LINES].cancel()
    go_on.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found.pop(LINES), asyncio.CancelledError)
    assert len(found) == LINES + 2
    assert not [one for one in found if isinstance(one, BaseException)]


async def test_what_it_cannot_do_goes_the_usual_way(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: Any) -> Any:
        raise OSError("no more connections")

    monkeypatch.setattr(Lines, "_open", refused)
    assert await fields(database, 7) == {"is": [7]}


async def test_an_error_is_told_as_the_usual_way_tells_it(database: Database) -> None:
    with pytest.raises(Exception, match="NUL") as raised:
        await database.look_up(ONE, {"id": "a\0b"})
    assert not is_outage(raised.value)
    assert await fields(database, 7) == {"is": [7]}


async def test_it_writes_nothing(database: Database) -> None:
    await fields(database, 1)
    line = lines(database).free[0]
    with pytest.raises(Exception, match="read-only transaction"):
        await line.connection.execute("DELETE FROM documents")


async def test_without_its_driver_look_ups_go_the_usual_way(
    postgres_database: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("postgres_lines", "postgres_reads"):
        monkeypatch.delitem(sys.modules, f"toolgate.db.{module}")
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    other = Database(postgres_database)
    assert other.postgres_reads is None
    assert await fields(other, 7) == {"is": [7]}
    await other.close()


@pytest.mark.parametrize("prepared", [True, False])
async def test_statements_are_prepared_unless_a_setting_says_not(
    postgres_database: str, database: Database, prepared: bool
) -> None:
    every = text("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%documents%'")
    other = Database(postgres_database, prepared=prepared)
    assert (other.postgres_reads is not None) is prepared

    def ask_often(connection: Connection) -> int | None:
        for _ in range(10):
            connection.execute(select(documents.c.id).limit(1)).all()
        return connection.scalar(every)

    assert await other.read(ask_often) == int(prepared)
    assert await fields(other, 7) == {"is": [7]}
    await other.close()


@pytest.mark.parametrize(
    ("parameters", "understood"),
    [
        ("", True),
        ("?host=/run/pg", True),
        ("?sslmode=require", True),
        ("?channel_binding=require", False),
    ],
)
async def test_an_address_that_only_the_usual_driver_understands(
    parameters: str, understood: bool
) -> None:
    assert is_understood(make_url(f"postgresql+psycopg://u:p@h/d{parameters}")) is understood
