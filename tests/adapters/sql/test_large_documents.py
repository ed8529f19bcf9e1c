"""Entries of a large document are made where nobody else waits for them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.databases import STARTS_A_SERVER

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.documents.index import CollectionIndex, Entry, is_large
from toolgate.db import grouped_writes
from toolgate.db.engine import Database
from toolgate.db.postgres_lines import Line
from toolgate.db.postgres_writes import MAX_GROUP_BYTES, MAX_WRITE_BYTES
from toolgate.db.row_writes import RowWrite, insertion, weight_of
from toolgate.db.tables import metadata, write_checks
from toolgate.ports.documents import Create, Delete, Fields, Filter, Operator, Query, Update, Write
from toolgate.ports.transforms import ArrayUnion

pytestmark = pytest.mark.anyio

VALUES = 2000
LARGE: Fields = {"n": 0, "many": {f"f{one}": one for one in range(VALUES)}}
SMALL = 5


class Conflict(Exception):
    """What a tool answers where a document is in another state."""


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[SqlDocuments]:
    database = Database(database_url)
    await database.write(metadata.create_all)
    yield SqlDocuments(database, "n")
    await database.close()


@pytest.fixture
async def postgres(postgres_database: str) -> AsyncIterator[SqlDocuments]:
    database = Database(postgres_database)
    await database.write(metadata.create_all)
    yield SqlDocuments(database, "n")
    await database.close()


async def write(store: SqlDocuments, one: Write) -> None:
    async with store.database.transaction() as tx:
        await store.write(tx, one, conflict=Conflict())
    assert tx.committed


class Places:
    """Where the entries of documents are made: on the event loop, in a group, or apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[int, str]] = []
        self._loop = threading.get_ident()
        self._in_group = threading.local()
        self._run: Any = vars(grouped_writes)["_run"]
        self._entries = CollectionIndex.entries
        monkeypatch.setattr(grouped_writes, "_run", self._run_noted)

        def entries(index: CollectionIndex, fields: Fields | None) -> set[Entry]:
            return self._entries_noted(index, fields)

        monkeypatch.setattr(CollectionIndex, "entries", entries)

    def _run_noted(self, connection: Connection, write: Any) -> bool:
        self._in_group.now = True
        try:
            return self._run(connection, write)
        finally:
            self._in_group.now = False

    def _entries_noted(self, index: CollectionIndex, fields: Fields | None) -> set[Entry]:
        entries = self._entries(index, fields)
        on_loop = threading.get_ident() == self._loop
        grouped = getattr(self._in_group, "now", False)
        self.made.append((len(entries), "loop" if on_loop else "group" if grouped else "apart"))
        return entries

    def of_large(self) -> list[str]:
        return [place for size, place in self.made if size > VALUES]

    def of_small(self) -> set[str]:
        return {place for size, place in self.made if 0 < size < VALUES}


async def with_small_ones(store: SqlDocuments, large: Write) -> None:
    small = [write(store, Create("c", f"s{one}", {"n": one})) for one in range(SMALL)]
    await asyncio.gather(*small[:2], write(store, large), *small[2:])


@pytest.mark.parametrize(
    ("change", "times"),
    [
        (Create("c", "new", LARGE), 1),
        (Update("c", "there", {"n": 1}), 2),
        (Update("c", "small", {"list": ArrayUnion(list(range(2 * VALUES)))}), 1),
        (Delete("c", "there"), 1),
    ],
    ids=["create", "change", "union", "delete"],
)
async def test_entries_of_a_large_document_are_made_apart(
    store: SqlDocuments, change: Write, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(store, Create("c", "there", LARGE))
    await write(store, Create("c", "small", {}))
    places = Places(monkeypatch)
    await with_small_ones(store, change)
    assert places.of_large() == ["apart"] * times
    assert len(places.of_small()) == 1
    assert "apart" not in places.of_small()
    found = await store.query(Query("c", [Filter("many.f7", Operator.EQUAL, 7)]))
    expected = {"new": ["new", "there"], "there": [] if isinstance(change, Delete) else ["there"]}
    assert [one.id for one in found] == expected.get(change.document_id, ["there"])


async def test_a_conflict_about_a_large_document_is_told(store: SqlDocuments) -> None:
    await write(store, Create("c", "there", LARGE))
    with pytest.raises(Conflict):
        await write(store, Create("c", "there", LARGE))
    with pytest.raises(Conflict):
        await write(store, Update("c", "none", LARGE))
    await write(store, Update("c", "there", {"n": 1}))
    assert await store.get("c", "there") == LARGE | {"n": 1}


def test_a_document_is_large_by_its_text_or_by_its_values() -> None:
    assert is_large(LARGE)
    assert is_large({"text": "t" * 70_000})
    assert is_large({"n" * 70_000: None})
    assert is_large({"list": [ArrayUnion([0] * VALUES)]})
    assert not is_large({"text": "t" * 60_000, "list": [0] * 10})
    assert not is_large({f"f{one}": {"a": [one]} for one in range(100)})
    assert not is_large(None)


# Statements of PostgreSQL -----------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters the values of each statement have, on the event loop."""
    sizes: list[int] = []
    rows = Line.rows

    async def noted(line: Line, text: str, values: Sequence[Any]) -> Sequence[Any]:
        sizes.append(sum(len(str(one)) for one in values))
        return await rows(line, text, values)

    monkeypatch.setattr(Line, "rows", noted)
    return sizes


@STARTS_A_SERVER
async def test_writes_that_share_a_statement_are_bounded_together(
    postgres: SqlDocuments, sent: list[int]
) -> None:
    text = "t" * 50_000
    many = [write(postgres, Create("c", str(one), {"text": text})) for one in range(40)]
    await asyncio.gather(*many)
    assert sum(sent) > 40 * 2 * len(text)  # with the change log
    assert max(sent) <= 1.1 * MAX_GROUP_BYTES
    assert len(sent) <= 6
    assert len(await postgres.query(Query("c", []))) == 40


@STARTS_A_SERVER
async def test_a_write_of_many_bytes_is_not_put_into_words_on_the_event_loop(
    postgres: SqlDocuments, sent: list[int]
) -> None:
    threads: list[int] = []
    row = ("t" * (MAX_WRITE_BYTES + 1),)
    async with postgres.database.transaction() as tx:
        tx.defer(
            lambda _: threads.append(threading.get_ident()),
            lambda: [RowWrite(insertion(write_checks, ["id"]), [row])],
        )
    assert tx.committed
    assert sent == []
    assert threads != [threading.get_ident()]
    assert len(threads) == 1


def test_no_more_is_weighed_than_it_takes() -> None:
    class Unseen(str):
        __slots__ = ()

        def __len__(self) -> int:
            raise AssertionError("weighed")

    assert weight_of([Unseen(), "t" * 100], 50) > 50
    assert weight_of({"a": [Unseen()] * 100}, 50) > 50
    assert weight_of({"name": ["text", b"bytes", 1, None]}, 1000) == 4 + 4 + 5 + 5 * 8
