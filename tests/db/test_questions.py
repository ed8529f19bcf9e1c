"""Reads of a few questions: over any connection the same answers, if possible without a thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, insert, select, text
from tests.databases import STARTS_A_SERVER
from tests.statements import noted_statements

from toolgate.db import postgres_reads
from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.postgres_lines import LINES, Line, Lines
from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions, answer
from toolgate.db.tables import documents, metadata
from toolgate.db.threads import Threads

pytestmark = pytest.mark.anyio

MANY = 20
PAGE = 4
AFTER = PreparedStatement(
    select(documents.c.id, documents.c.fields)
    .where(documents.c.id > bindparam("after"))
    .order_by(documents.c.id)
    .limit(bindparam("rows"))
)
ONE = PreparedStatement(select(documents.c.id).where(documents.c.id == bindparam("id")))
EVERY = [f"d{number:02}" for number in range(MANY)]
OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def pages(after: str = "", seen: list[int] | None = None) -> Questions[list[str]]:
    """Every id after one, in several questions."""
    ids: list[str] = []
    while rows := (yield AFTER, {"after": after, "rows": PAGE}):
        if seen is not None:
            seen.append(threading.get_ident())
        ids += [id for id, _ in rows]
        assert [fields["is"] for _, fields in rows] == [[int(id[1:])] for id, _ in rows]
        after = ids[-1]
    return ids


@asynccontextmanager
async def filled(url: str, **options: Any) -> AsyncGenerator[Database]:
    opened = Database(url, **options)
    await opened.write(metadata.create_all)
    rows = [
        {"namespace": "n", "collection": "c", "id": id, "fields": {"is": [int(id[1:])]}}
        for id in EVERY
    ]
    await opened.write(lambda connection: connection.execute(insert(documents), rows))
    yield opened
    await opened.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with filled(database_url) as opened:
        yield opened


@pytest.fixture
async def postgres(postgres_database: str) -> AsyncIterator[Database]:
    async with filled(postgres_database) as opened:
        yield opened


def lines_of(database: Database) -> Lines:
    assert database.postgres_reads is not None
    return database.postgres_reads.lines


async def test_questions_need_no_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("not for a few questions")

    monkeypatch.setattr(Threads, "run", never)
    with noted_statements() as statements:
        assert await database.ask(pages) == EVERY
    assert len(statements) == MANY // PAGE + 1


async def test_within_a_transaction_they_see_what_it_wrote(database: Database) -> None:
    row = {"namespace": "n", "collection": "c", "id": "d99", "fields": {"is": [99]}}

    def write_and_read(connection: Connection) -> list[str]:
        connection.execute(insert(documents), [row])
        return answer(connection, pages("d18"))

    async with database.transaction() as tx:
        assert await tx.run(write_and_read) == ["d19", "d99"]
        tx.abandon()
    assert await database.ask(lambda: pages("d18")) == ["d19"]


async def test_what_is_made_of_the_answers_may_fail(database: Database) -> None:
    def failing() -> Questions[None]:
        yield ONE, {"id": "d01"}
        raise LookupError("not what was hoped for")

    with pytest.raises(LookupError, match="hoped"):
        await database.ask(failing)
    assert await database.ask(lambda: pages("d18")) == ["d19"]


@STARTS_A_SERVER
async def test_a_long_read_goes_on_in_a_thread(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_reads, "MAX_ROWS", 2 * PAGE)
    seen: list[int] = []
    with noted_statements() as statements:
        assert await postgres.ask(lambda: pages(seen=seen)) == EVERY
    assert len(statements) == MANY // PAGE + 1
    here = threading.get_ident()
    assert [one == here for one in seen] == [True, True, False, False, False]
    assert len(lines_of(postgres).free) == 1


@STARTS_A_SERVER
async def test_many_at_once_share_a_few_connections(postgres: Database) -> None:
    found = await asyncio.gather(*(postgres.ask(pages) for _ in range(50)))
    assert found == [EVERY] * 50
    assert lines_of(postgres).open == LINES


@STARTS_A_SERVER
async def test_a_read_is_begun_anew_where_the_server_ended_its_connection(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(postgres.ask(pages) for _ in range(LINES)))
    await postgres.write(lambda connection: connection.execute(text(OTHERS)).all())
    assert await postgres.ask(pages) == EVERY

    rows, asked = Line.rows, 0

    async def ended_in_between(self: Line, statement: str, values: Sequence[Any]) -> Sequence[Any]:
        nonlocal asked
        asked += 1
        if asked == 3:
            await postgres.write(lambda connection: connection.execute(text(OTHERS)).all())
        return await rows(self, statement, values)

    monkeypatch.setattr(Line, "rows", ended_in_between)
    assert await postgres.ask(pages) == EVERY
    assert asked == 3 + MANY // PAGE + 1


@STARTS_A_SERVER
async def test_who_is_cancelled_leaves_nobody_its_answer(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, rows = asyncio.Event(), Line.rows

    async def slow(self: Line, statement: str, values: Sequence[Any]) -> Sequence[Any]:
        if "slow" not in values:
            return await rows(self, statement, values)
        began.set()
        return await self.connection.fetch("SELECT pg_sleep(600)")

    monkeypatch.setattr(Line, "rows", slow)
    asking = asyncio.create_task(postgres.ask(lambda: pages("slow")))
    await began.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert lines_of(postgres).open == 0
    assert await postgres.ask(pages) == EVERY


@STARTS_A_SERVER
async def test_slow_ones_hold_up_neither_others_nor_look_ups(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_reads, "WAIT_SECONDS", 0.001)
    held, go_on, rows = asyncio.Event(), asyncio.Event(), Line.rows
    begun = 0

    async def slow(self: Line, statement: str, values: Sequence[Any]) -> Sequence[Any]:
        nonlocal begun
        begun += 1
        if begun == LINES:
            held.set()
        await go_on.wait()
        return await rows(self, statement, values)

    async with filled(postgres_database) as database:
        monkeypatch.setattr(Line, "rows", slow)
        slow_ones = [asyncio.create_task(database.ask(pages)) for _ in range(LINES)]
        await held.wait()
        for _ in range(3):
            assert await database.ask(pages) == EVERY
        assert (await database.look_up(ONE, {"id": "d05"})).id == "d05"
        assert begun == LINES
        go_on.set()
        assert await asyncio.gather(*slow_ones) == [EVERY] * LINES
        begun = LINES
        assert await database.ask(pages) == EVERY
        assert begun > LINES, "when lines are free again, they are used"


@STARTS_A_SERVER
async def test_a_value_that_is_refused_costs_no_connection(postgres: Database) -> None:
    await asyncio.gather(*(postgres.ask(pages) for _ in range(LINES)))
    [first, *_] = lines_of(postgres).free
    with pytest.raises(Exception, match="NUL") as raised:
        await postgres.ask(lambda: pages("a\0b"))
    assert not is_outage(raised.value)
    assert first in lines_of(postgres).free
    assert lines_of(postgres).open == LINES


@STARTS_A_SERVER
async def test_without_prepared_statements_they_go_the_usual_way(postgres_database: str) -> None:
    async with filled(postgres_database, prepared=False) as database:
        assert database.postgres_reads is None
        assert await database.ask(pages) == EVERY
