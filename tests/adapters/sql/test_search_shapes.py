"""What a caller asks for decides neither how long a statement is nor how many there are."""

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.documents.index import CollectionIndex
from toolgate.adapters.sql.documents.search import FEW, search
from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import metadata
from toolgate.ports.documents import (
    MAX_IN_VALUES,
    Create,
    Filter,
    Operator,
    Order,
    Query,
)

pytestmark = pytest.mark.anyio

MAX_TEXT = 20_000
MAX_SHAPES = 250
"""Over all queries; fewer than the statements that are kept."""
INDEX = CollectionIndex("shapes", "items", frozenset())
DIALECTS: Sequence[Dialect] = [sqlite.dialect(), asyncpg.dialect()]
IN_ALL = [f"all{number}" for number in range(MAX_IN_VALUES)]


def statements_of(query: Query, counts: Any) -> list[PreparedStatement]:
    """What a search asks, of a database with so many entries of each equality and no documents."""
    asked: list[PreparedStatement] = []
    questions = search("shapes", query, INDEX)
    rows: Any = None
    try:
        while True:
            statement, values = questions.send(rows)
            asked.append(statement)
            counting = "after_id" not in values
            rows = [(counts(),)] if counting else []
    except StopIteration:
        return asked


def one_of(number: int, values: int) -> Filter:
    return Filter(f"f{number}", Operator.IN, [f"{number}-{one}" for one in range(values)])


@pytest.mark.parametrize("order", [[], [Order("by")], [Order("by", descending=True)]])
@pytest.mark.parametrize("entries", [0, FEW])
@pytest.mark.parametrize("values", [1, 2, 4, 8, 9, 16, MAX_IN_VALUES])
def test_thirty_lists_make_short_statements(values: int, entries: int, order: list[Order]) -> None:
    query = Query("items", [one_of(number, values) for number in range(30)], order)
    asked = statements_of(query, lambda: entries)
    lengths = [len(one.compile(dialect).text) for one in asked for dialect in DIALECTS]
    assert 0 < max(lengths) < MAX_TEXT


def test_all_queries_share_few_statements() -> None:
    chance = random.Random(13)
    shapes: set[PreparedStatement] = set()
    for _ in range(3000):
        most, many = chance.choice([1, 2, 4, 8, 16, MAX_IN_VALUES]), chance.choice([1, 2, 3, 30])
        sizes = [chance.randint(1, most) for _ in range(many)]
        filters = [one_of(number, values) for number, values in enumerate(sizes)]
        orders = [[], [Order("by")], [Order("by", descending=True)]]
        query = Query("items", filters, chance.choice(orders))
        shapes.update(statements_of(query, lambda: chance.choice([1, FEW])))
    assert len(shapes) < MAX_SHAPES


V, W = "v", "w"
CONTRADICTIONS = {
    "two values": [Filter("name", Operator.EQUAL, V), Filter("name", Operator.EQUAL, W)],
    "two lists": [Filter("name", Operator.IN, [V, 1]), Filter("name", Operator.IN, [W, True])],
    "lists with one in common, which is excluded": [
        *(Filter("name", Operator.IN, [V, f"{number}"]) for number in range(29)),
        Filter("name", Operator.NOT_EQUAL, V),
    ],
    "all of a list excluded": [
        Filter("name", Operator.IN, [V, W]),
        Filter("name", Operator.NOT_IN, [W, V, 1]),
    ],
    "less than each": [Filter("name", Operator.IN, [V, W]), Filter("name", Operator.LESS, V)],
    "of another type": [Filter("name", Operator.EQUAL, V), Filter("name", Operator.GREATER, 1)],
    "null and not": [Filter("name", Operator.EQUAL, None), Filter("name", Operator.NOT_EQUAL, V)],
}


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[SqlDocuments]:
    """Documents with the same list of elements, and values of which most pass no filter."""
    database = Database(database_url)
    await database.write(metadata.create_all)
    made = SqlDocuments(database, "shapes")
    async with database.transaction() as tx:
        await made.write(tx, *(Create("items", f"d{one:03}", fields_of(one)) for one in range(300)))
    yield made
    await database.close()


def fields_of(number: int) -> dict[str, Any]:
    lists = {f"f{one}": IN_ALL[(number + one) % 30] for one in range(30)}
    return {
        "name": V,
        "number": number,
        "map": {"a": {"b": number}},
        "tags": [number % 2, number % 3 + 2],
        **lists,
    }


@pytest.mark.parametrize("filters", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
async def test_filters_that_contradict_each_other_read_nothing(
    store: SqlDocuments, filters: list[Filter]
) -> None:
    with noted_statements() as asked:
        assert list(await store.query(Query("items", filters))) == []
    assert asked == []


async def test_thirty_lists_of_thirty_find_what_they_mean(store: SqlDocuments) -> None:
    filters = [Filter(f"f{one}", Operator.IN, IN_ALL) for one in range(29)]
    filters.append(Filter("f29", Operator.IN, ["none", *IN_ALL[:25]]))
    wanted = [f"d{one:03}" for one in range(300) if (one + 29) % 30 < 25]
    with noted_statements() as asked:
        found = await store.query(Query("items", filters))
        ordered = await store.query(Query("items", filters, [Order("number", descending=True)]))
    assert [one.id for one in found] == wanted
    assert [one.id for one in ordered] == wanted[::-1]
    assert max(map(len, asked)) < MAX_TEXT


async def test_elements_of_one_list_do_not_contradict_each_other(store: SqlDocuments) -> None:
    tags = [Filter("tags", Operator.ARRAY_CONTAINS, one) for one in (1, 2, 1)]
    found = await store.query(Query("items", tags))
    assert [one.id for one in found] == [f"d{one:03}" for one in range(3, 300, 6)]


async def test_a_list_longer_than_firestore_takes_finds_what_it_means(store: SqlDocuments) -> None:
    numbers = Filter("number", Operator.IN, list(range(5, 105)))
    found = await store.query(Query("items", [numbers]))
    assert [one.id for one in found] == [f"d{one:03}" for one in range(5, 105)]


async def test_values_that_the_index_cuts_are_told_apart(store: SqlDocuments) -> None:
    long = "x" * 2000
    async with store.database.transaction() as tx:
        await store.write(tx, Create("long", "a", {"name": f"{long}a"}))
        await store.write(tx, Create("long", "b", {"name": f"{long}b"}))
    either = Filter("name", Operator.IN, [f"{long}a", f"{long}b"])
    for other in (
        Filter("name", Operator.NOT_EQUAL, f"{long}a"),
        Filter("name", Operator.GREATER, f"{long}a"),
        Filter("name", Operator.EQUAL, f"{long}b"),
    ):
        assert [one.id for one in await store.query(Query("long", [either, other]))] == ["b"]
