"""Small writes to PostgreSQL: several in one statement, and each as if it were alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.databases import STARTS_A_SERVER
from tests.db.small_writes import CHECK, MANY, Conflict, add, lines, refuse, stored
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.row_writes import RowWrite
from toolgate.db.tables import changes, document_index, documents, metadata
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    Delete,
    Filter,
    Merge,
    Operator,
    Query,
    Set,
    Update,
    Write,
)
from toolgate.ports.transforms import Increment

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]


@pytest.fixture
async def database(postgres_database: str) -> AsyncIterator[Database]:
    opened = Database(postgres_database)
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


@pytest.fixture
def store(database: Database) -> SqlDocuments:
    return SqlDocuments(database, "n")


async def write(store: SqlDocuments, one: Write, call: str | None = None) -> Transaction:
    async with store.database.transaction() as tx:
        tx.call = call
        await store.write(tx, one, conflict=Conflict())
    return tx


async def rows(database: Database, table: Any) -> Sequence[Any]:
    return await database.read(lambda connection: connection.execute(select(table)).all())


async def indexed(store: SqlDocuments, field: str, value: int) -> list[str]:
    found = await store.query(Query("c", [Filter(field, Operator.EQUAL, value)]))
    return [one.id for one in found]


# One write ------------------------------------------------------------------------------------


async def test_a_new_document_takes_one_round_trip(database: Database, store: SqlDocuments) -> None:
    with noted_statements() as statements:
        assert (await write(store, Create("c", "d", {"a": 1}))).committed
    assert len(statements) == 1, statements


@pytest.mark.parametrize(
    "change",
    [
        Set("c", "d", {"b": 2}),
        Merge("c", "d", {"b": 2}),
        Update("c", "d", {"b": 2}),
        Delete("c", "d"),
    ],
    ids=lambda change: type(change).__name__,
)
async def test_a_document_is_changed_in_two_round_trips(store: SqlDocuments, change: Write) -> None:
    await write(store, Create("c", "d", {"a": 1}))
    with noted_statements() as statements:
        assert (await write(store, change)).committed
    assert len(statements) == 2, statements


async def test_a_change_comes_with_its_entries_and_its_row_in_the_log(
    database: Database, store: SqlDocuments
) -> None:
    await write(store, Set("c", "d", {"a": 1, "b": [1, 2]}), "first")
    await write(store, Update("c", "d", {"a": Increment(1)}), "second")
    assert await store.get("c", "d") == {"a": 2, "b": [1, 2]}
    assert await indexed(store, "a", 2) == ["d"]
    assert await indexed(store, "a", 1) == []
    await write(store, Delete("c", "d"), "third")
    assert await store.get("c", "d") is None
    assert await rows(database, document_index) == []
    told = [(one.call, one.path, one.before, one.after) for one in await rows(database, changes)]
    first, second = {"a": 1, "b": [1, 2]}, {"a": 2, "b": [1, 2]}
    assert told == [
        ("first", "c/d", None, first),
        ("second", "c/d", first, second),
        ("third", "c/d", second, None),
    ]
    assert all(one.transaction_id for one in await rows(database, changes))


async def test_what_is_deleted_twice_changes_nothing_the_second_time(
    database: Database, store: SqlDocuments
) -> None:
    assert (await write(store, Delete("c", "d"))).committed
    assert await rows(database, changes) == []


@pytest.mark.parametrize("change", [Create("c", "there", {}), Update("c", "none", {"a": 1})])
async def test_a_document_in_another_state_is_a_conflict_and_nothing_is_stored(
    database: Database, store: SqlDocuments, change: Write
) -> None:
    await write(store, Create("c", "there", {"is": "first"}))
    with pytest.raises(Conflict):
        await write(store, change)
    assert await store.get("c", "there") == {"is": "first"}
    assert len(await rows(database, changes)) == 1


# Several at once ------------------------------------------------------------------------------


async def test_writes_that_come_together_are_one_statement(database: Database) -> None:
    with noted_statements() as statements:
        made = await asyncio.gather(*(add(database, f"n{one}") for one in range(MANY)))
    assert all(one.committed for one in made)
    assert len(statements) == 1, statements
    assert await stored(database) == {f"n{one}" for one in range(MANY)}


async def test_one_of_several_that_is_refused_undoes_only_itself(store: SqlDocuments) -> None:
    await write(store, Create("c", "3", {"is": "first"}))
    writes = [write(store, Create("c", str(one), {"n": one})) for one in range(MANY)]
    made = await asyncio.gather(*writes, return_exceptions=True)
    assert [number for number, one in enumerate(made) if isinstance(one, BaseException)] == [3]
    assert isinstance(made[3], Conflict)
    found = await store.get_many([("c", str(one)) for one in range(MANY)])
    assert found == [{"is": "first"} if one == 3 else {"n": one} for one in range(MANY)]


async def test_a_value_that_the_server_refuses_is_the_error_of_its_write_alone(
    store: SqlDocuments,
) -> None:
    bad = write(store, Create("c", "a\0b", {}))
    good = [write(store, Create("c", str(one), {"n": one})) for one in range(5)]
    made = await asyncio.gather(bad, *good, return_exceptions=True)
    assert isinstance(made[0], Exception)
    assert all(isinstance(one, Transaction) and one.committed for one in made[1:])
    assert await store.get_many([("c", str(one)) for one in range(5)]) == [
        {"n": one} for one in range(5)
    ]


async def test_a_value_that_cannot_be_told_is_the_error_of_its_write_alone(
    database: Database,
) -> None:
    async def bad() -> None:
        async with database.transaction() as tx:
            tx.defer(refuse, lambda: [RowWrite(CHECK, [(object(),)])])

    good = [add(database, f"n{one}") for one in range(5)]
    made = await asyncio.gather(bad(), *good, return_exceptions=True)
    assert isinstance(made[0], Conflict)
    assert all(isinstance(one, Transaction) and one.committed for one in made[1:])


async def both(store: SqlDocuments, first: Write, second: Write) -> Transaction:
    """Two writes of one transaction, each with its conflict."""
    async with store.database.transaction() as tx:
        await store.write(tx, first, conflict=Conflict())
        await store.write(tx, second, conflict=Conflict())
    return tx


async def test_of_two_writes_in_one_transaction_both_are_stored_or_none(
    database: Database, store: SqlDocuments
) -> None:
    await write(store, Create("c", "a", {"n": 1}))
    with pytest.raises(Conflict):
        await both(store, Create("c", "a", {"n": 2}), Create("c", "b", {}))
    assert await store.get_many([("c", "a"), ("c", "b")]) == [{"n": 1}, None]
    assert len(await rows(database, changes)) == 1
    raised = Update("c", "a", {"n": Increment(1)})
    assert (await both(store, raised, raised)).committed
    assert await store.get("c", "a") == {"n": 3}
    assert (await both(store, Create("c", "b", {"n": 1}), Update("c", "b", {"n": 2}))).committed
    assert await store.get("c", "b") == {"n": 2}


async def test_one_id_is_given_to_one_of_those_who_want_it(
    database: Database, store: SqlDocuments
) -> None:
    writes = [write(store, Create("c", "d", {"n": one})) for one in range(MANY)]
    made = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(one, Transaction) for one in made) == 1
    assert sum(isinstance(one, Conflict) for one in made) == MANY - 1
    assert len(await rows(database, documents)) == len(await rows(database, changes)) == 1


async def test_changes_of_one_document_at_once_are_all_there(
    database: Database, store: SqlDocuments, postgres_database: str
) -> None:
    """Also those of another server, which nobody here can put in order."""
    other = Database(postgres_database)
    try:
        await write(store, Create("c", "d", {"n": 0}))
        both = [store, SqlDocuments(other, "n")]
        steps = [write(both[one % 2], Update("c", "d", {"n": Increment(1)})) for one in range(MANY)]
        made = await asyncio.gather(*steps)
    finally:
        await other.close()
    assert all(one.committed for one in made)
    assert await store.get("c", "d") == {"n": MANY}
    assert await indexed(store, "n", MANY) == ["d"]
    assert len(await rows(database, document_index)) == 1
    seen = [(one.before, one.after) for one in await rows(database, changes)]
    assert len(seen) == MANY + 1
    numbers = sorted(after["n"] for _, after in seen)
    assert numbers == list(range(MANY + 1))


async def test_what_was_changed_after_it_was_read_is_changed_from_there(
    database: Database, store: SqlDocuments
) -> None:
    await write(store, Create("c", "d", {"n": 1}))
    async with database.transaction() as tx:
        await store.write(tx, Update("c", "d", {"n": Increment(1)}), conflict=Conflict())
        await write(store, Set("c", "d", {"n": 10}))
    assert await store.get("c", "d") == {"n": 11}
    assert await indexed(store, "n", 11) == ["d"]


async def test_what_was_deleted_after_it_was_read_is_a_conflict(
    database: Database, store: SqlDocuments
) -> None:
    await write(store, Create("c", "d", {"n": 1}))

    async def change_late() -> None:
        async with database.transaction() as tx:
            await store.write(tx, Update("c", "d", {"n": 2}), conflict=Conflict())
            await write(store, Delete("c", "d"))

    with pytest.raises(Conflict):
        await change_late()
    assert await store.get("c", "d") is None


async def test_who_waits_for_a_row_keeps_nobody_else_waiting(
    database: Database, store: SqlDocuments
) -> None:
    await write(store, Create("c", "held", {"n": 1}))
    change = update(documents).where(documents.c.id == "held").values(namespace="n")
    async with database.transaction() as holding:
        await holding.run(lambda connection: connection.execute(change))
        waiting = asyncio.create_task(write(store, Update("c", "held", {"n": 2})))
        await asyncio.gather(*(write(store, Create("c", str(one), {"n": one})) for one in range(5)))
        assert not waiting.done()
        (line,) = lines(database).free
        assert not line.connection.is_closed()
    assert (await waiting).committed
    assert await store.get("c", "held") == {"n": 2}
