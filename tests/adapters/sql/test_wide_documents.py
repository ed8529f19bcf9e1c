"""A document with very many fields costs by their number, and is refused before others wait."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.documents.index import MAX_ENTRIES, CollectionIndex
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.ports import transforms
from toolgate.ports.documents import Create, DocumentRefused, Fields, Merge, Set, Update, Write
from toolgate.ports.rules import MAX_DOCUMENT_BYTES, broken_document_rule
from toolgate.ports.transforms import DeleteField, fields_after

pytestmark = pytest.mark.anyio

FEW = 200
HALF = MAX_DOCUMENT_BYTES // 2


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


def wide(maps: int) -> Fields:
    return {"b": {f"k{number}": {"v": 0, "s": "x"} for number in range(maps)}}


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the maps that `transforms` copies."""
    sizes: list[int] = []

    class Counting(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, dict)

        def __call__(cls, fields: Fields) -> Fields:
            sizes.append(len(fields))
            return dict(fields)

    class Map(metaclass=Counting):
        pass

    monkeypatch.setattr(transforms, "dict", Map, raising=False)
    return sizes


def merged(maps: int) -> Write:
    return Merge("items", "d", wide(maps))


def updated(maps: int) -> Write:
    return Update("items", "d", {f"b.k{number}.v": 1 for number in range(maps)})


@pytest.mark.parametrize("write", [merged, updated])
def test_each_map_is_copied_once(write: Any, copied: list[int]) -> None:
    for maps in (FEW, 2 * FEW):
        copied.clear()
        before = wide(maps)
        after = fields_after(write(maps), before, "now")
        assert before == wide(maps)
        assert after is not None
        assert after["b"] is not before["b"]
        # The document, the wide map, and each of those in it with its two fields.
        assert sorted(copied) == sorted([1, maps, *[2] * maps])


def test_a_map_that_takes_the_place_of_another_is_no_copy_of_it() -> None:
    before: Fields = {"a": {"b": 1}, "c": {"d": {"e": 1}}}
    changes: Fields = {"a.x": 1, "a": 5, "c.d.e": 2, "c": {"d": {}}, "c.d.f": 3}
    assert fields_after(Update("items", "d", changes), before, "now") == {
        "a": 5,
        "c": {"d": {"f": 3}},
    }
    assert before == {"a": {"b": 1}, "c": {"d": {"e": 1}}}


@pytest.mark.parametrize("kind", [Create, Set, Merge])
async def test_too_many_values_are_refused_without_a_statement(
    kind: type[Create] | type[Set] | type[Merge], database: Database
) -> None:
    store = SqlDocuments(database, "wide")
    with noted_statements() as statements, pytest.raises(DocumentRefused, match="40,000"):
        async with database.transaction() as tx:
            await store.write(tx, kind("items", "d", wide(MAX_ENTRIES // 3 + 1)))
    assert statements == []


@pytest.mark.parametrize(
    "fields",
    [
        {"l": [1, 1.0] * MAX_ENTRIES},
        {"l": ["x" * 1100 + str(number) for number in range(10)] * (MAX_ENTRIES // 10 + 1)},
        {"l": [{"a": 1}] * (MAX_ENTRIES + 1)},
        {"l": [2**62 + number % 8 for number in range(MAX_ENTRIES + 1)]},
        {str(number): DeleteField() for number in range(MAX_ENTRIES + 1)},
        {"free": {str(number): number for number in range(MAX_ENTRIES + 1)}},
    ],
    ids=["equal", "long", "maps", "large", "deleted", "exempt"],
)
def test_no_value_is_counted_that_has_no_entry(fields: Fields) -> None:
    index = CollectionIndex("wide", "items", frozenset({("free",)}))
    index.check_given(Merge("items", "d", fields))


@pytest.mark.parametrize("document", [{"a": ["x"] * HALF}, {"a": [2**70] * HALF, "b": "\ud800"}])
def test_the_size_is_looked_at_before_any_value(
    document: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walked(*_: Any) -> None:
        raise AssertionError("walked through")

    monkeypatch.setattr("toolgate.ports.rules.broken_fields_rule", walked)
    assert broken_document_rule(document) == "must have at most 1048576 bytes as JSON"


@pytest.mark.parametrize("together", [False, True])
async def test_merges_do_not_grow_a_document_over_its_limit(
    together: bool, database: Database
) -> None:
    store = SqlDocuments(database, "grown")
    async with database.transaction() as tx:
        await store.write(tx, Set("items", "d", {"a": "x" * HALF}))
    never = ValueError("conflict") if together else None
    with pytest.raises(DocumentRefused, match="The document would have 1,048,"):
        async with database.transaction() as tx:
            await store.write(tx, Merge("items", "d", {"b": "x" * HALF}), conflict=never)
    assert await store.get("items", "d") == {"a": "x" * HALF}
