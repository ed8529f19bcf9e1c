"""What is true of a tree in the gate's database: cost, transactions, and writers at once."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, insert, select, text
from tests.contract.tree.stores import Tree, opened_sql
from tests.databases import KINDS
from tests.patience import PATIENT
from tests.statements import noted_driver_reads

from toolgate.adapters.sql.tree import SqlTree
from toolgate.adapters.sql.tree.paths import END, decoded, encoded
from toolgate.db.changes import TREE
from toolgate.db.engine import Database
from toolgate.db.tables import changes, metadata, tree_nodes
from toolgate.ports.documents import StoreContended, StoreUnavailable
from toolgate.ports.tree import (
    Bound,
    Increment,
    Push,
    Remove,
    SetValue,
    TreeQuery,
    TreeWrite,
    UpdateChildren,
)
from toolgate.ports.tree_order import key_rank

pytestmark = pytest.mark.anyio

NAMESPACE = "many"
KEYS = st.text(st.characters(min_codepoint=32, exclude_characters=".$#[]/\x7f"), min_size=1)
KEYS = (KEYS | st.integers(-(2**33), 2**33).map(str) | st.from_regex(r"\A-?0*[0-9]{1,2}\Z")).filter(
    lambda key: not any("\ud800" <= character <= "\udfff" for character in key)
)
PATHS = st.lists(KEYS, max_size=4).map(tuple)

Statements = list[tuple[str, Any]]


@pytest.fixture(params=KINDS)
async def sql_tree(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Tree]:
    url = f"sqlite:///{tmp_path / 'tree.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server")
    async with opened_sql(url) as tree:
        yield tree


@pytest.fixture
async def postgres_tree(postgres_server: str) -> AsyncIterator[Tree]:
    async with opened_sql(postgres_server) as tree:
        yield tree


@given(PATHS, PATHS)
def test_paths_are_ordered_as_the_tree_is(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert decoded(encoded(one)) == one
    ranks = [[key_rank(key) for key in path] for path in (one, other)]
    assert (encoded(one) < encoded(other)) == (ranks[0] < ranks[1])
    below = other[: len(one)] == one
    assert (encoded(one) <= encoded(other) < encoded(one) + END) == below


async def test_a_write_is_seen_by_others_when_its_transaction_commits(sql_tree: Tree) -> None:
    async with sql_tree.transaction() as tx:
        await sql_tree.store.write(tx, SetValue("a", 1))
        assert await sql_tree.get("a") is None
        assert await sql_tree.store.transact(tx, "a", lambda value: value + 1) == 2
        await sql_tree.store.write(tx, SetValue("a", Increment(1)))
    assert await sql_tree.get("a") == 3


async def test_a_transaction_that_is_abandoned_leaves_nothing(sql_tree: Tree) -> None:
    await sql_tree.set("a", {"b": 1})
    async with sql_tree.transaction() as tx:
        await sql_tree.store.write(tx, SetValue("a", 2))
        tx.abandon()
    assert await sql_tree.get("a") == {"b": 1}


async def test_namespaces_are_trees_of_their_own(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path / 'tree.db'}")
    await database.write(metadata.create_all)
    one, other = SqlTree(database, "one"), SqlTree(database, "other")
    async with database.transaction() as tx:
        await one.write(tx, SetValue("", {"a": 1}))
        await other.write(tx, SetValue("", {"b": 2}))
    assert await one.get("") == {"a": 1}
    assert await other.get("", shallow=True) == {"b": True}
    await database.close()


async def test_a_database_without_the_table_is_unavailable(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    tree = SqlTree(database, "tests")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await tree.get("a")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        async with database.transaction() as tx:
            await tree.write(tx, SetValue("a", 1))
    await database.close()


async def test_a_writer_waits_for_one_above_it_and_then_replaces_what_it_wrote(
    postgres_tree: Tree,
) -> None:
    async with anyio.create_task_group() as tasks, postgres_tree.transaction() as tx:
        await postgres_tree.store.write(tx, SetValue("a/b", 1))
        tasks.start_soon(postgres_tree.set, "a/b/c/d", 2)
        await someone_waits(postgres_tree)
    assert await postgres_tree.get() == {"a": {"b": {"c": {"d": 2}}}}


async def test_a_writer_waits_for_one_below_it(postgres_tree: Tree) -> None:
    async with anyio.create_task_group() as tasks, postgres_tree.transaction() as tx:
        await postgres_tree.store.write(tx, SetValue("a/b/c/d", 1))
        tasks.start_soon(postgres_tree.set, "a", 2)
        await someone_waits(postgres_tree)
    assert await postgres_tree.get() == {"a": 2}


async def test_writers_of_many_paths_wait_too(postgres_tree: Tree) -> None:
    many = [SetValue(f"a/{number}", number) for number in range(20)]
    async with anyio.create_task_group() as tasks, postgres_tree.transaction() as tx:
        await postgres_tree.store.write(tx, *many)
        tasks.start_soon(postgres_tree.set, "a/7/x", 2)
        await someone_waits(postgres_tree)
    assert await postgres_tree.get("a/7") == {"x": 2}


async def test_writers_side_by_side_do_not_wait(postgres_tree: Tree) -> None:
    async with postgres_tree.transaction() as tx:
        await postgres_tree.store.write(tx, SetValue("a/b", 1))
        with anyio.fail_after(PATIENT):
            await postgres_tree.set("a/c", 2)
        assert await postgres_tree.get("a") == {"c": 2}
    assert await postgres_tree.get("a") == {"b": 1, "c": 2}


async def test_of_two_writers_that_wait_for_each_other_one_is_told(postgres_tree: Tree) -> None:
    both_wrote, outcomes = anyio.Semaphore(0), list[str]()

    async def write(first: str, then: str) -> None:
        try:
            async with postgres_tree.transaction() as tx:
                await postgres_tree.store.write(tx, SetValue(first, first))
                both_wrote.release()
                if both_wrote.value < 2:
                    await someone_waits(postgres_tree)
                await postgres_tree.store.write(tx, SetValue(then, first))
            outcomes.append("stored")
        except StoreContended:
            outcomes.append("contended")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write, "a", "b")
        tasks.start_soon(write, "b", "a")
    assert sorted(outcomes) == ["contended", "stored"]
    [value] = set((await postgres_tree.get()).values())
    assert await postgres_tree.get() == {"a": value, "b": value}


async def test_many_paths_are_written_at_once(sql_tree: Tree) -> None:
    await sql_tree.write(*[SetValue(f"s{number}", "scalar") for number in range(700)])
    await sql_tree.write(*[SetValue(f"s{number}/{number}", number) for number in range(700)])
    await sql_tree.write(*[SetValue(f"s{number}", None) for number in range(1, 700)])
    assert await sql_tree.get() == {"s0": [0]}


async def test_much_below_a_path_is_read_as_a_whole(sql_tree: Tree) -> None:
    many = {f"k{number:04}": {"n": number} for number in range(500)}
    await sql_tree.set("many", many)
    assert await sql_tree.get("many") == many


async def someone_waits(tree: Tree) -> None:
    """Return once somebody waits for a lock of the tree."""
    assert isinstance(tree.store, SqlTree)
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with anyio.fail_after(PATIENT):
        while not await tree.store._database.read(lambda one: one.execute(waiting).scalar_one()):
            continue


async def filled(tree: Tree, leaves: int) -> None:
    """Children with ten leaves each, so many leaves in all."""
    assert isinstance(tree.store, SqlTree)
    rows = [
        {
            "namespace": tree.store._namespace,
            "path": encoded(["big", f"child{number // 10:06}", f"leaf{number % 10}"]),
            "value": str(number % 7),
        }
        for number in range(leaves)
    ]

    def fill(connection: Connection) -> None:
        connection.execute(insert(tree_nodes), rows)
        connection.execute(text("ANALYZE"))

    await tree.store._database.write(fill)


def one_child(tree: Tree) -> dict[str, Callable[[], Awaitable[Any]]]:
    """What is done with one child; the same however many there are."""
    first = TreeQuery(limit_to_first=1)
    last = TreeQuery(start_at=Bound("child000000"), limit_to_last=1)
    return {
        "read": lambda: tree.get("big/child000000"),
        "read a leaf": lambda: tree.get("big/child000000/leaf3"),
        "first key": lambda: tree.store.get("big", first),
        "last key": lambda: tree.store.get("big", last),
        "shallow": lambda: tree.get("big/child000000", shallow=True),
        "set": lambda: tree.set("big/child000000", {"leaf3": 1}),
        "increment": lambda: tree.set("big/child000000/leaf3", Increment(1)),
        "update": lambda: tree.update("big/child000000", leaf3=2, leaf4=None),
        "push": lambda: tree.push("big", {"x": 1}),
        "transact": lambda: tree.transact("big/child000000/leaf3", lambda value: value + 1),
        "remove": lambda: tree.remove("big/child000000"),
    }


@contextmanager
def noted() -> Iterator[Statements]:
    """Every statement with its values."""
    statements: Statements = []

    def note(statement: str, values: Any) -> None:
        if "tree_nodes" in statement:
            statements.append((statement, values))

    def executed(connection: Any, cursor: Any, statement: str, values: Any, *_: Any) -> None:
        note(statement, values)

    event.listen(Engine, "before_cursor_execute", executed)
    try:
        with noted_driver_reads(note):
            yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", executed)


async def statements_of(tree: Tree) -> dict[str, Statements]:
    told: dict[str, Statements] = {}
    for name, work in one_child(tree).items():
        with noted() as statements:
            await work()
        told[name] = statements
    return told


# What the change log is told --------------------------------------------------------------------


async def logged(tree: Tree, *writes: TreeWrite) -> list[tuple[str, Any, Any]]:
    """What writes tell the log: path, before and after."""
    async with tree.transaction() as tx:
        tx.diff = []
        await tree.store.write(tx, *writes)
        assert {one.store for one in tx.diff} <= {TREE}
    return [(one.path, one.before, one.after) for one in tx.diff]


async def test_a_change_tells_what_was_at_the_path_and_what_is(sql_tree: Tree) -> None:
    assert await logged(sql_tree, SetValue("a/b", {"c": 1, "d": [1, 2]})) == [
        ("a/b", None, {"c": 1, "d": [1, 2]})
    ]
    assert await logged(sql_tree, UpdateChildren("a", {"b/c": Increment(2), "x": "y"})) == [
        ("a/b/c", 1, 3),
        ("a/x", None, "y"),
    ]
    pushed = Push("a/list", True)
    assert await logged(sql_tree, pushed) == [(f"a/list/{pushed.key}", None, True)]
    assert await logged(sql_tree, Remove("a/b")) == [("a/b", {"c": 3, "d": [1, 2]}, None)]
    assert await logged(sql_tree, Remove("a/b")) == []
    assert await logged(sql_tree, SetValue("", None)) == [
        ("", {"a": {"x": "y", "list": {pushed.key: True}}}, None)
    ]


async def test_where_a_scalar_makes_room_the_change_is_that_of_the_scalar(sql_tree: Tree) -> None:
    await sql_tree.set("a", {"10": 1, "2": "scalar", "b": 1})
    assert await logged(sql_tree, UpdateChildren("a/2", {"c/d": 1, "e": 2})) == [
        ("a/2", "scalar", {"c": {"d": 1}, "e": 2})
    ]
    assert await logged(sql_tree, Remove("a/b/c")) == []


async def test_a_change_is_stored_in_the_commit_of_its_write(sql_tree: Tree) -> None:
    async with sql_tree.transaction() as tx:
        await sql_tree.store.write(tx, SetValue("a", 1))
        rows = await tx.run(lambda connection: connection.execute(select(changes)).all())
        namespace = rows[-1].namespace
        tx.abandon()
    ours = select(changes).where(changes.c.namespace == namespace)
    async with sql_tree.transaction() as tx:
        assert await tx.run(lambda connection: connection.execute(ours).all()) == []
        await sql_tree.store.write(tx, SetValue("a", 1))
    async with sql_tree.transaction() as tx:
        (row,) = await tx.run(lambda connection: connection.execute(ours).all())
    assert (row.store, row.path, row.before, row.after) == (TREE, "a", None, 1)


async def test_one_child_costs_the_same_among_many(sql_tree: Tree) -> None:
    await filled(sql_tree, 10)
    few = {name: len(one) for name, one in (await statements_of(sql_tree)).items()}
    await sql_tree.remove("")
    await filled(sql_tree, 10_000)
    many = await statements_of(sql_tree)
    assert {name: len(one) for name, one in many.items()} == few
    assert few["read"] == 1
    assert few["set"] == 2
    for name, statements in many.items():
        for statement, values in statements:
            if not statement.startswith("INSERT"):
                told = await explained(sql_tree, statement, values)
                assert "Seq Scan" not in told, (name, told)
                assert "SCAN tree_nodes" not in told, (name, told)
                assert "path" in told, (name, told)


async def explained(tree: Tree, statement: str, values: Any) -> str:
    """How the database goes about a statement, of many the first."""
    assert isinstance(tree.store, SqlTree)
    word = "EXPLAIN" if tree.store._database.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
    one = values[0] if isinstance(values, list) else values

    def explain(connection: Connection) -> str:
        rows = connection.exec_driver_sql(f"{word} {statement}", one)
        return "\n".join(str(row) for row in rows)

    return await tree.store._database.write(explain)
