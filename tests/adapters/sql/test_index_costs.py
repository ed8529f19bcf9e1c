"""A query costs by what it returns, not by how much lies there."""

import json
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from tests.effort import effort
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.documents.index import MAX_ENTRIES
from toolgate.adapters.sql.documents.search import FEW as MAX_COUNTED
from toolgate.adapters.sql.documents.search import search
from toolgate.db.engine import Database
from toolgate.db.questions import answer
from toolgate.db.tables import metadata
from toolgate.ports.documents import (
    Create,
    Cursor,
    DocumentRefused,
    Filter,
    Operator,
    Order,
    Query,
    StoredDocument,
)

pytestmark = pytest.mark.anyio

FEW, MANY = 200, effort(4000, 50_000)
TOGETHER = 500
EACH = 20
"""Documents of a group, however many groups there are."""
MORE = 1.5
ROWS_OF_A_RESULT = 15
"""That PostgreSQL touches in all parts of a plan: few documents and many have different plans."""

QUERIES = {
    "equal": Query("items", [Filter("group", Operator.EQUAL, "g3")], limit=EACH),
    "in": Query("items", [Filter("group", Operator.IN, ["g3", "g4"])], limit=EACH),
    "element": Query("items", [Filter("tags", Operator.ARRAY_CONTAINS, "t3")], limit=EACH),
    "greater": Query("items", [Filter("number", Operator.GREATER, 10)], limit=EACH),
    "ordered": Query("items", order=[Order("number", descending=True)], limit=EACH),
    "page": Query(
        "items", order=[Order("number")], limit=EACH, start=Cursor((100,), inclusive=False)
    ),
    "all": Query("items", limit=EACH),
    "equal and ordered": Query(
        "items", [Filter("group", Operator.EQUAL, "g3")], [Order("number")], limit=EACH
    ),
    "two equal": Query(
        "items",
        [Filter("kind", Operator.EQUAL, "k"), Filter("group", Operator.EQUAL, "g3")],
        limit=EACH,
    ),
}


async def filled(database: Database, size: int) -> SqlDocuments:
    store = SqlDocuments(database, f"of{size}")
    for first in range(0, size, TOGETHER):
        numbers = range(first, min(size, first + TOGETHER))
        async with database.transaction() as tx:
            await store.write(tx, *(_create(number, size) for number in numbers))
    return store


def _create(number: int, size: int) -> Create:
    group = number % (size // EACH)
    fields = {"group": f"g{group}", "tags": [f"t{group}"], "number": number, "kind": "k"}
    return Create("items", f"d{number:06}", fields)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('index') / 'documents.db'}"
    return request.getfixturevalue("postgres_room")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def database(module_url: str, anyio_backend: str) -> AsyncIterator[Database]:
    opened = Database(module_url)
    await opened.write(metadata.create_all)
    for size in (FEW, MANY):
        await filled(opened, size)
    if opened.dialect == "postgresql":
        await opened.write(lambda connection: connection.execute(text("ANALYZE")))
    yield opened
    await opened.close()


def work_of(connection: Connection, look: Callable[[Connection], Any]) -> int:
    """How much a read has to do: steps of SQLite's machine, rows that PostgreSQL touches."""
    if connection.dialect.name == "sqlite":
        return _steps(connection, look)
    with noted_executions(connection) as executed:
        look(connection)
    return sum(_rows_touched(connection, *one) for one in executed)


def _steps(connection: Connection, look: Callable[[Connection], Any]) -> int:
    driver: Any = connection.connection.dbapi_connection
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    driver.set_progress_handler(count, 1)
    look(connection)
    driver.set_progress_handler(None, 0)
    return steps


@contextmanager
def noted_executions(connection: Connection) -> Generator[list[tuple[str, Any]]]:
    """Statements and their values, as the driver gets them."""
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        executed.append((statement, values))

    event.listen(connection, "before_cursor_execute", note)
    yield executed
    event.remove(connection, "before_cursor_execute", note)


def _rows_touched(connection: Connection, statement: str, values: Any) -> int:
    explained = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) {statement}"
    answer: Any = connection.exec_driver_sql(explained, values).scalar()
    plan = json.loads(answer) if isinstance(answer, str) else answer
    return _rows(plan[0]["Plan"])


def _rows(plan: dict[str, Any]) -> int:
    removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Join Filter", 0)
    own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(map(_rows, plan.get("Plans", [])))


@pytest.mark.parametrize("name", QUERIES)
async def test_a_query_works_as_much_among_many_as_among_few(name: str, database: Database) -> None:
    few, of_few = await found_and_work(database, FEW, QUERIES[name])
    many, of_many = await found_and_work(database, MANY, QUERIES[name])
    assert few == many == EACH
    bound = ROWS_OF_A_RESULT * EACH if database.dialect == "postgresql" else MORE * of_few
    if name == "two equal":  # both are counted first, so far
        bound += 3 * MAX_COUNTED
    assert of_many <= bound, (of_few, of_many)


async def found_and_work(database: Database, size: int, query: Query) -> tuple[int, int]:
    namespace = f"of{size}"
    index = SqlDocuments(database, namespace).index_of("items")
    found: list[StoredDocument] = []

    def look(connection: Connection) -> None:
        found[:] = answer(connection, search(namespace, query, index))

    work = await database.read(lambda connection: work_of(connection, look))
    return len(found), work


@pytest.mark.parametrize("name", sorted(set(QUERIES) - {"equal and ordered", "two equal"}))
async def test_a_query_is_one_statement(name: str, database: Database) -> None:
    with noted_statements() as statements:
        assert await SqlDocuments(database, f"of{MANY}").query(QUERIES[name])
    assert len(statements) == 1


async def test_a_document_with_too_many_values_is_refused_and_not_stored(
    database: Database,
) -> None:
    store = SqlDocuments(database, "large")
    fields = {"numbers": list(range(MAX_ENTRIES))}
    with pytest.raises(DocumentRefused, match="40,000 indexed values"):
        async with database.transaction() as tx:
            await store.write(tx, Create("items", "d", fields))
    assert await store.get("items", "d") is None
    exempt = SqlDocuments(database, "large", ["items.numbers"])
    async with database.transaction() as tx:
        await exempt.write(tx, Create("items", "d", fields))
    assert await exempt.get("items", "d") == fields
