"""Short reads of the embedded database need no thread; long ones do not hold up the event loop."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, column, func, select, text
from sqlalchemy.exc import DBAPIError

from toolgate.db import short_reads
from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement

pytestmark = pytest.mark.anyio

SHORT = "SELECT 7"
LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
    "SELECT max(i) FROM n"
)
MANY = 1_000_000

Look = Callable[[Connection], Any]


@pytest.fixture
async def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    monkeypatch.setattr(short_reads, "SECONDS", 0.0)  # over when SQLite first asks
    opened = Database(f"sqlite:///{tmp_path / 'one.db'}")
    yield opened
    await opened.close()


def noting(statement: str, seen: list[int]) -> Look:
    """A read that notes the thread of each time it is run."""

    def look(connection: Connection) -> Any:
        seen.append(threading.get_ident())
        return connection.scalar(text(statement))

    return look


async def test_a_short_read_stays_on_the_event_loop(database: Database) -> None:
    seen: list[int] = []
    assert await database.read(noting(SHORT, seen), quick=True) == 7
    assert seen == [threading.get_ident()]


async def test_a_long_one_is_stopped_and_made_anew_in_a_thread(database: Database) -> None:
    seen: list[int] = []
    assert await database.read(noting(LONG.format(MANY), seen), quick=True) == MANY
    here, there = seen
    assert here == threading.get_ident() != there


async def test_a_long_one_before_does_not_make_a_short_one_long(database: Database) -> None:
    seen: list[int] = []
    await database.read(noting(LONG.format(MANY), []), quick=True)
    for _ in range(3):
        assert await database.read(noting(SHORT, seen), quick=True) == 7
    assert set(seen) == {threading.get_ident()}


async def test_a_long_look_up_finds_its_row(database: Database) -> None:
    numbers = func.json_each(bindparam("list")).table_valued(column("value"))
    largest = PreparedStatement(select(func.max(numbers.c.value).label("largest")))
    found = await database.look_up(largest, {"list": str(list(range(MANY)))})
    assert found.largest == MANY - 1


async def test_what_a_long_one_raises_in_its_thread_is_told(database: Database) -> None:
    seen: list[int] = []

    def look(connection: Connection) -> Any:
        seen.append(threading.get_ident())
        connection.scalar(text(LONG.format(MANY)))
        return connection.scalar(text("SELECT no_such_column"))

    with pytest.raises(DBAPIError, match="no_such_column"):
        await database.read(look, quick=True)
    assert len(seen) == 2
    assert await database.read(noting(SHORT, seen), quick=True) == 7


async def test_a_read_that_failed_leaves_no_connection_that_stops_others(
    database: Database,
) -> None:
    with pytest.raises(DBAPIError, match="no_such_column"):
        await database.read(noting("SELECT no_such_column", []), quick=True)
    for _ in range(3):
        assert await database.read(noting(LONG.format(MANY), [])) == MANY


async def test_a_look_up_that_was_stopped_is_not_compiled_anew_ever_after(
    database: Database,
) -> None:
    numbers = func.json_each(bindparam("list")).table_valued(column("value"))
    first = PreparedStatement(select(numbers.c.value))
    many = str(list(range(10_000)))  # the first row comes at once; it is stopped at a later one
    assert (await database.look_up(first, {"list": many})).value == 0
    await database.look_up(first, {"list": "[1]"})
    compiled: list[Any] = []
    driver = database._glances._driver  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]

    def note(*what: Any) -> int:
        compiled.append(what)
        return sqlite3.SQLITE_OK

    driver.set_authorizer(note)
    await database.look_up(first, {"list": "[2]"})  # the authorizer itself makes all expire
    compiled.clear()
    for number in range(3):
        assert (await database.look_up(first, {"list": f"[{number}]"})).value == number
    assert compiled == []
