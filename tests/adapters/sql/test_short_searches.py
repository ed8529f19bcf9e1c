"""Short reads of documents need one statement and no thread, on either database."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.db.threads import Threads
from toolgate.ports.documents import Create, Filter, Operator, Query, Reference

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqlDocuments]:
    """Eight documents in each of two collections, in a database whose threads are at rest."""
    database = Database(database_url)
    await database.write(metadata.create_all)
    made = SqlDocuments(database, "short")
    async with database.transaction() as tx:
        for collection in ("items", "others"):
            await made.write(
                tx, *(Create(collection, f"d{number}", {"number": number}) for number in range(8))
            )

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("not for a short read")

    with monkeypatch.context() as patch:
        patch.setattr(Threads, "run", never)
        yield made
    await database.close()


async def test_a_search_that_finds_three_of_eight(store: SqlDocuments) -> None:
    wanted = Query("items", [Filter("number", Operator.LESS, 3)], limit=20)
    with noted_statements() as statements:
        found = await store.query(wanted)
    assert [one.id for one in found] == ["d0", "d1", "d2"]
    assert len(statements) == 1, statements


async def test_a_search_that_counts_first(store: SqlDocuments) -> None:
    filters = [Filter("number", Operator.EQUAL, 3), Filter("number", Operator.LESS, 5)]
    with noted_statements() as statements:
        found = await store.query(Query("items", filters))
    assert [one.id for one in found] == ["d3"]
    assert len(statements) == 2, statements


@pytest.mark.parametrize("many", [1, 2, 3, 7, 8])
async def test_many_documents_of_a_collection(store: SqlDocuments, many: int) -> None:
    wanted: list[Reference] = [("items", f"d{number}") for number in range(many)]
    with noted_statements() as statements:
        found = await store.get_many([*wanted, ("items", "none")])
    assert found == [*({"number": number} for number in range(many)), None]
    assert len(statements) == 1, statements


async def test_documents_of_two_collections_and_none_at_all(store: SqlDocuments) -> None:
    with noted_statements() as statements:
        found = await store.get_many([("others", "d1"), ("items", "d2"), ("others", "d1")])
        assert await store.get_many([]) == []
    assert found == [{"number": 1}, {"number": 2}, {"number": 1}]
    assert len(statements) == 2, statements


async def test_the_names_of_collections(store: SqlDocuments) -> None:
    assert await store.collections() == ["items", "others"]
