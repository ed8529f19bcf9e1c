"""Documents from before there was an index get one, in steps, whatever stops it in between."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Connection, delete, func, insert, select, update
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import IndexBuild, SqlDocuments, build
from toolgate.db.engine import Database
from toolgate.db.tables import document_index, document_index_state, documents
from toolgate.db.upgrades import upgrade_at_start
from toolgate.ports.documents import Create, Fields, Filter, Operator, Query

pytestmark = pytest.mark.anyio

MANY = 23


class Stopped(Exception):
    """Somebody ended the process."""


async def no_progress(done: int, total: int) -> None:
    """For a build that nobody watches."""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade_at_start(opened)
    yield opened
    await opened.close()


def rows_of(document_ids: list[str], **fields: Any) -> list[Fields]:
    return [
        {"namespace": "tests", "collection": "items", "id": one, "fields": {"name": one, **fields}}
        for one in document_ids
    ]


def store_unindexed(connection: Connection) -> None:
    """Documents as an earlier version left them."""
    connection.execute(insert(documents), rows_of([f"d{number:02}" for number in range(MANY)]))
    connection.execute(update(document_index_state).values(built_to=0))


async def entries(database: Database) -> int:
    every = select(func.count()).select_from(document_index)
    return await database.read(lambda connection: connection.scalar(every)) or 0


async def names(database: Database, unindexed: tuple[str, ...] = (), **limits: Any) -> list[str]:
    at_least = Filter("name", Operator.GREATER_OR_EQUAL, "d")
    store = SqlDocuments(database, "tests", unindexed)
    return [one.id for one in await store.query(Query("items", [at_least], **limits))]


async def test_documents_of_an_earlier_version_are_found_once_they_are_indexed(
    database: Database,
) -> None:
    await database.write(store_unindexed)
    assert await names(database) == []
    assert not await IndexBuild(database).is_complete()
    assert await IndexBuild(database).complete(no_progress) == MANY
    assert await IndexBuild(database).is_complete()
    assert len(await names(database)) == MANY


async def test_a_build_that_was_stopped_goes_on_where_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "STEP", 5)
    seen: list[tuple[int, int]] = []

    async def stop_after_two(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 2:
            raise Stopped

    await database.write(store_unindexed)
    with pytest.raises(Stopped):
        await IndexBuild(database).complete(stop_after_two)
    assert seen == [(5, MANY), (10, MANY)]
    assert len(await names(database)) == 10
    assert await IndexBuild(database).complete(no_progress) == MANY - 10
    assert len(await names(database)) == MANY


async def test_a_document_that_is_written_meanwhile_has_its_entries_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "STEP", 5)
    store = SqlDocuments(database, "tests")

    async def write(done: int, total: int) -> None:
        async with database.transaction() as tx:
            await store.write(tx, Create("items", f"new{done}", {"name": f"new{done}"}))

    await database.write(store_unindexed)
    await IndexBuild(database).complete(write)
    assert await entries(database) == len(await names(database)) > MANY


async def test_where_other_fields_are_exempt_the_index_is_made_anew(database: Database) -> None:
    store = SqlDocuments(database, "tests")
    async with database.transaction() as tx:
        await store.write(tx, Create("items", "d1", {"name": "d1", "body": "text", "tags": ["a"]}))
    assert await entries(database) == 4
    exempt = ("items.body", "*.tags")
    assert not await IndexBuild(database, exempt).is_complete()
    await IndexBuild(database, exempt).complete(no_progress)
    assert await entries(database) == 1
    assert await names(database, exempt) == ["d1"]


async def test_a_query_by_an_exempt_field_reads_the_collection(database: Database) -> None:
    store = SqlDocuments(database, "tests", ["items.size"])
    async with database.transaction() as tx:
        some = [Create("items", f"d{size}", {"name": "d", "size": size}) for size in range(5)]
        await store.write(tx, *some)
    large = Filter("size", Operator.GREATER, 1)
    assert [one.id for one in await store.query(Query("items", [large], limit=2))] == ["d2", "d3"]
    equal = Filter("size", Operator.EQUAL, 4)
    assert [one.id for one in await store.query(Query("items", [equal]))] == ["d4"]


async def test_a_complete_index_costs_a_start_one_look(database: Database) -> None:
    with noted_statements() as statements:
        assert await IndexBuild(database).complete(no_progress) == 0
    assert len([one for one in statements if "document_index" in one]) == 1


async def test_an_empty_database_needs_no_build(database: Database) -> None:
    assert await IndexBuild(database).is_complete()
    await database.write(lambda c: c.execute(delete(document_index_state)))
    assert not await IndexBuild(database).is_complete()
