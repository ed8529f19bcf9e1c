"""What every document store promises, whatever it is made of.

A case is an async function that takes a `Room`: a store with a collection nobody else uses.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import pytest

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    MAX_IN_VALUES,
    Create,
    DocumentExists,
    DocumentStore,
    Fields,
    Filter,
    Json,
    Operator,
    Query,
    StoredDocument,
    new_id,
)

Condition: TypeAlias = tuple[str, str, Json]

ODD_NAMES = [
    "with space",
    'double"quote',
    "single'quote",
    "back`tick",
    "back\\slash",
    "Ünïcödé",
    "日本語",
    "😀",
    "1st",
    "a-b",
    "a/b",
    "a[0]",
    "$value",
    "%",
    "_",
]


@dataclass(frozen=True, slots=True)
class Room:
    """A store, its transactions and an empty collection in it."""

    store: DocumentStore
    transaction: Callable[[], Transaction]
    collection: str

    async def add(
        self, document_id: str | None, fields: Fields, *, collection: str | None = None
    ) -> str:
        """Create a document in a transaction of its own."""
        async with self.transaction() as tx:
            new = Create(collection or self.collection, document_id or new_id(), fields)
            await self.store.write(tx, new)
            return new.document_id

    async def add_each(self, field: str, values: dict[str, Json]) -> None:
        """Create one document for every value, named after its key, with that one field."""
        for document_id, value in values.items():
            await self.add(document_id, {field: value})

    async def get(self, document_id: str) -> Fields | None:
        """The document of that id."""
        return await self.store.get(self.collection, document_id)

    async def query(self, *conditions: Condition, limit: int = 1000) -> list[StoredDocument]:
        """The documents that pass, in the order of the store."""
        filters = [
            Filter(field, Operator(operator), value) for field, operator, value in conditions
        ]
        return list(await self.store.query(Query(self.collection, filters, limit=limit)))

    async def ids(self, *conditions: Condition) -> str:
        """The ids of the documents that pass, sorted, with spaces between."""
        return " ".join(sorted(one.id for one in await self.query(*conditions)))


Case: TypeAlias = Callable[[Room], Awaitable[None]]
CASES: list[Case] = []


def case(function: Case) -> Case:
    """Add a function to the cases."""
    CASES.append(function)
    return function


# Reading and creating


@case
async def the_store_answers_a_check(room: Room) -> None:
    assert await room.store.check() is None


@case
async def a_missing_document_is_none(room: Room) -> None:
    assert await room.get("absent") is None


@case
async def an_empty_collection_has_no_documents(room: Room) -> None:
    assert await room.query() == []


@case
async def a_document_comes_back_as_it_was_created(room: Room) -> None:
    fields = {
        "text": "Ada",
        "empty": "",
        "whole": 42,
        "negative": -7,
        "fraction": 2.5,
        "tiny": 1e-300,
        "yes": True,
        "no": False,
        "nothing": None,
        "list": [1, "two", None, {"three": [3]}],
        "empty_list": [],
        "map": {"a": {"b": "c"}},
        "empty_map": {},
    }
    assert await room.add("one", fields) == "one"
    assert await room.get("one") == fields
    assert await room.query() == [StoredDocument("one", fields)]


@case
async def booleans_and_numbers_keep_their_types(room: Room) -> None:
    await room.add("one", {"yes": True, "one": 1, "list": [True, 1]})
    found = await room.get("one")
    assert found is not None
    assert found["yes"] is True
    assert type(found["one"]) is int
    assert [type(value) for value in found["list"]] == [bool, int]


@case
async def a_made_up_id_leads_to_the_document(room: Room) -> None:
    made = [await room.add(None, {"n": n}) for n in range(3)]
    assert all(made)
    assert len(set(made)) == len(made)
    assert [await room.get(one) for one in made] == [{"n": 0}, {"n": 1}, {"n": 2}]


@case
async def an_existing_id_is_refused_and_the_document_stays(room: Room) -> None:
    await room.add("one", {"n": 1})
    with pytest.raises(DocumentExists):
        await room.add("one", {"n": 2, "more": True})
    assert await room.get("one") == {"n": 1}
    assert await room.ids() == "one"


@case
async def of_concurrent_creations_of_one_id_exactly_one_wins(room: Room) -> None:
    won: list[int] = []
    refused: list[int] = []

    async def attempt(number: int) -> None:
        try:
            await room.add("one", {"by": number})
            won.append(number)
        except DocumentExists:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(attempt, number)
    assert (len(won), len(refused)) == (1, 7)
    assert await room.get("one") == {"by": won[0]}


@case
async def concurrent_creations_of_different_ids_all_succeed(room: Room) -> None:
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(room.add, f"d{number}", {"by": number})
    assert await room.ids() == "d0 d1 d2 d3 d4 d5 d6 d7"


@case
async def an_abandoned_transaction_leaves_nothing_where_writes_join_it(room: Room) -> None:
    async with room.transaction() as tx:
        await room.store.write(tx, Create(room.collection, "one", {"n": 1}))
        tx.abandon()
    expected = None if room.store.joins_transaction else {"n": 1}
    assert await room.get("one") == expected


@case
async def an_empty_document_is_a_document(room: Room) -> None:
    await room.add("one", {})
    assert await room.get("one") == {}
    assert await room.ids() == "one"


@case
async def the_id_is_not_among_the_fields(room: Room) -> None:
    await room.add("one", {"n": 1})
    await room.add("two", {"id": "mine"})
    assert await room.get("one") == {"n": 1}
    assert await room.get("two") == {"id": "mine"}
    assert {one.id: one.fields for one in await room.query()} == {
        "one": {"n": 1},
        "two": {"id": "mine"},
    }


@case
async def ids_may_be_odd(room: Room) -> None:
    odd = ["with space", "a.b", "Ünï", "日本", "😀", "%2F", "it's", 'qu"ote', "x" * 500, "0"]
    odd += ["\u00e9", "e\u0301"]
    for number, document_id in enumerate(odd):
        await room.add(document_id, {"n": number})
    assert [await room.get(one) for one in odd] == [{"n": number} for number in range(len(odd))]
    assert sorted(one.id for one in await room.query()) == sorted(odd)


@case
async def ids_differ_by_case(room: Room) -> None:
    await room.add("Ada", {"n": 1})
    await room.add("ada", {"n": 2})
    assert await room.get("Ada") == {"n": 1}
    assert await room.get("ada") == {"n": 2}


@case
async def collections_do_not_mix(room: Room) -> None:
    near = [f"{room.collection}x", room.collection.upper(), f"{room.collection}_"]
    for name in [room.collection, *near]:
        await room.add("one", {"in": name}, collection=name)
    for name in [room.collection, *near]:
        assert await room.store.get(name, "one") == {"in": name}
        assert await room.store.query(Query(name)) == [StoredDocument("one", {"in": name})]


@case
async def a_nested_collection_belongs_to_its_document(room: Room) -> None:
    first = f"{room.collection}/abc123/permissions"
    second = f"{room.collection}/def456/permissions"
    await room.add("abc123", {"name": "Ada"})
    await room.add("read", {"of": "abc"}, collection=first)
    await room.add("read", {"of": "def"}, collection=second)
    assert await room.store.get(first, "read") == {"of": "abc"}
    assert await room.store.get(second, "read") == {"of": "def"}
    wanted = [Filter("of", Operator.EQUAL, "abc")]
    assert await room.store.query(Query(first, wanted)) == [StoredDocument("read", {"of": "abc"})]
    assert await room.store.query(Query(second, wanted)) == []
    assert await room.ids() == "abc123"


@case
async def what_the_caller_changes_later_is_not_stored(room: Room) -> None:
    fields: Fields = {"list": [1], "map": {"a": 1}}
    await room.add("one", fields)
    fields["list"].append(2)
    for found in (await room.get("one"), (await room.query())[0].fields):
        assert found is not None
        assert found == {"list": [1], "map": {"a": 1}}
        found["map"]["a"] = 2
    assert await room.get("one") == {"list": [1], "map": {"a": 1}}


@case
async def deep_documents_come_back_whole(room: Room) -> None:
    deep: Json = "bottom"
    for level in range(8):
        deep = {"level": level, "next": [deep]}
    await room.add("one", {"deep": deep})
    assert await room.get("one") == {"deep": deep}


@case
async def large_documents_come_back_whole(room: Room) -> None:
    fields = {f"field{number}": "x" * 1000 for number in range(500)}
    await room.add("one", fields)
    assert await room.get("one") == fields


@case
async def text_comes_back_as_it_was(room: Room) -> None:
    texts = ["Ünïcödé", "日本語", "😀👩‍👩‍👧", "\u00e9", "e\u0301"]
    texts += ["line\nbreak\ttab", "\u2028", '"\\`', " pad "]
    await room.add("one", {"texts": texts})
    assert await room.get("one") == {"texts": texts}


@case
async def whole_numbers_are_exact_within_64_bits(room: Room) -> None:
    values = {"a": 2**53, "b": 2**53 + 1, "c": 2**63 - 1, "d": -(2**63)}
    await room.add_each("n", values)
    for document_id, value in values.items():
        assert await room.get(document_id) == {"n": value}
        assert await room.ids(("n", "==", value)) == document_id
    assert await room.ids(("n", ">", 2**53)) == "b c"


# Filters


@case
async def equality_finds_what_is_equal(room: Room) -> None:
    await room.add_each("v", {"a": "x", "b": "X", "c": "", "d": 3, "e": 3.5, "f": True, "g": False})
    assert await room.ids(("v", "==", "x")) == "a"
    assert await room.ids(("v", "==", "")) == "c"
    assert await room.ids(("v", "==", 3)) == "d"
    assert await room.ids(("v", "==", 3.5)) == "e"
    assert await room.ids(("v", "==", True)) == "f"
    assert await room.ids(("v", "==", False)) == "g"
    assert await room.ids(("v", "==", "absent")) == ""


@case
async def equality_keeps_types_apart(room: Room) -> None:
    await room.add_each("v", {"int": 1, "text": "1", "yes": True, "zero": 0, "no": False})
    await room.add_each("v", {"empty": "", "null": None, "list": [1], "map": {"1": 1}})
    assert await room.ids(("v", "==", 1)) == "int"
    assert await room.ids(("v", "==", "1")) == "text"
    assert await room.ids(("v", "==", True)) == "yes"
    assert await room.ids(("v", "==", 0)) == "zero"
    assert await room.ids(("v", "==", False)) == "no"
    assert await room.ids(("v", "==", "")) == "empty"


@case
async def whole_and_fractional_numbers_are_one_type(room: Room) -> None:
    await room.add_each("v", {"int": 1, "float": 1.0, "more": 1.5, "two": 2})
    assert await room.ids(("v", "==", 1)) == "float int"
    assert await room.ids(("v", "==", 1.0)) == "float int"
    assert await room.ids(("v", "!=", 1)) == "more two"
    assert await room.ids(("v", ">", 1)) == "more two"
    assert await room.ids(("v", "<=", 1.5)) == "float int more"
    assert await room.ids(("v", "in", [1.0, 2.0])) == "float int two"


@case
async def equality_compares_lists_and_maps_by_content(room: Room) -> None:
    await room.add_each("v", {"list": [1, 2], "turned": [2, 1], "longer": [1, 2, 3]})
    await room.add_each(
        "v", {"map": {"a": 1, "b": [2]}, "other": {"a": 1}, "empty": {}, "none": []}
    )
    assert await room.ids(("v", "==", [1, 2])) == "list"
    assert await room.ids(("v", "==", {"b": [2], "a": 1})) == "map"
    assert await room.ids(("v", "==", {})) == "empty"
    assert await room.ids(("v", "==", [])) == "none"
    assert await room.ids(("v", "!=", [1, 2])) == "empty longer map none other turned"


@case
async def equality_keeps_types_apart_inside_lists_and_maps(room: Room) -> None:
    await room.add_each("v", {"int": [1], "yes": [True], "text": ["1"]})
    await room.add_each("m", {"map_int": {"a": 1}, "map_yes": {"a": True}})
    assert await room.ids(("v", "==", [1])) == "int"
    assert await room.ids(("v", "==", [True])) == "yes"
    assert await room.ids(("m", "==", {"a": True})) == "map_yes"


@case
async def inequality_finds_every_other_value(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 2, "c": 3})
    assert await room.ids(("v", "!=", 2)) == "a c"
    assert await room.ids(("v", "!=", 9)) == "a b c"


@case
async def inequality_holds_between_types(room: Room) -> None:
    await room.add_each("v", {"five": 5, "text": "abc", "yes": True, "list": [5], "map": {"n": 5}})
    assert await room.ids(("v", "!=", 5)) == "list map text yes"
    assert await room.ids(("v", "!=", "abc")) == "five list map yes"
    assert await room.ids(("v", "!=", True)) == "five list map text"
    assert await room.ids(("v", "!=", "5")) == "five list map text yes"


@case
async def a_document_without_the_field_never_matches(room: Room) -> None:
    await room.add("without", {"other": 1})
    await room.add("empty", {})
    conditions: list[tuple[str, Json]] = [
        ("==", 1),
        ("!=", 1),
        ("<", 1),
        ("<=", 1),
        (">", 1),
        (">=", 1),
        ("in", [1]),
        ("array-contains", 1),
    ]
    for operator, value in conditions:
        assert await room.ids(("v", operator, value)) == "", operator


@case
async def a_document_without_the_field_is_not_null(room: Room) -> None:
    await room.add("without", {"other": 1})
    await room.add("null", {"v": None})
    await room.add("with", {"v": 1})
    assert await room.ids(("v", "==", None)) == "null"
    assert await room.ids(("v", "!=", None)) == "with"


@case
async def null_equals_null_and_nothing_else(room: Room) -> None:
    await room.add_each("v", {"null": None, "zero": 0, "no": False, "empty": "", "list": []})
    assert await room.ids(("v", "==", None)) == "null"
    assert await room.ids(("v", "!=", None)) == "empty list no zero"


@case
async def null_differs_from_nothing(room: Room) -> None:
    await room.add_each("v", {"null": None, "one": 1, "two": 2})
    assert await room.ids(("v", "!=", 1)) == "two"
    assert await room.ids(("v", "!=", "text")) == "one two"


@case
async def null_is_in_no_range(room: Room) -> None:
    await room.add_each("v", {"null": None, "one": 1, "no": False, "empty": ""})
    for operator in ("<", "<=", ">", ">="):
        assert await room.ids(("v", operator, None)) == "", operator
    assert await room.ids(("v", "<=", 1)) == "one"


@case
async def null_in_a_list_of_values_matches_nothing(room: Room) -> None:
    await room.add_each("v", {"null": None, "one": 1, "two": 2})
    await room.add("without", {})
    assert await room.ids(("v", "in", [None])) == ""
    assert await room.ids(("v", "in", [1, None])) == "one"


@case
async def a_list_is_not_searched_for_null(room: Room) -> None:
    await room.add_each("v", {"null": [None], "one": [1], "both": [1, None]})
    assert await room.ids(("v", "array-contains", None)) == ""
    assert await room.ids(("v", "array-contains", 1)) == "both one"


@case
async def ranges_of_numbers(room: Room) -> None:
    await room.add_each("v", {"a": -1, "b": 0, "c": 1, "d": 2})
    assert await room.ids(("v", "<", 1)) == "a b"
    assert await room.ids(("v", "<=", 1)) == "a b c"
    assert await room.ids(("v", ">", 0)) == "c d"
    assert await room.ids(("v", ">=", 0)) == "b c d"
    assert await room.ids(("v", ">", 0), ("v", "<", 2)) == "c"


@case
async def ranges_of_text(room: Room) -> None:
    await room.add_each("v", {"a": "", "b": "Z", "c": "a", "d": "ab", "e": "b"})
    assert await room.ids(("v", "<", "a")) == "a b"
    assert await room.ids(("v", ">", "a")) == "d e"
    assert await room.ids(("v", ">=", "a"), ("v", "<", "b")) == "c d"


@case
async def text_is_ordered_by_code_point(room: Room) -> None:
    await room.add_each("v", {"a": "z", "b": "é", "c": "日", "d": "\uff5e", "e": "😀"})
    assert await room.ids(("v", ">", "z")) == "b c d e"
    assert await room.ids(("v", ">", "\uff5e")) == "e"
    assert await room.ids(("v", "<", "😀")) == "a b c d"


@case
async def ranges_stay_within_one_type(room: Room) -> None:
    await room.add_each("v", {"int": 5, "text": "5", "yes": True, "null": None, "list": [5]})
    await room.add("map", {"v": {"n": 5}})
    assert await room.ids(("v", ">", 0)) == "int"
    assert await room.ids(("v", "<", 10)) == "int"
    assert await room.ids(("v", ">=", "")) == "text"
    assert await room.ids(("v", "<=", "zzz")) == "text"


@case
async def false_comes_before_true(room: Room) -> None:
    await room.add_each("v", {"yes": True, "no": False, "one": 1, "zero": 0})
    assert await room.ids(("v", ">=", False)) == "no yes"
    assert await room.ids(("v", "<", True)) == "no"


@case
async def lists_and_maps_have_an_order(room: Room) -> None:
    await room.add_each("v", {"a": [1, 2], "b": [1, 3], "c": [1], "d": {"k": 1}, "e": {"k": 2}})
    assert await room.ids(("v", "<", [1, 3])) == "a c"
    assert await room.ids(("v", ">=", [1, 2])) == "a b"
    assert await room.ids(("v", ">", {"k": 1})) == "e"


@case
async def in_finds_any_of_the_values(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": "1", "c": True, "d": 2, "e": [1], "f": {"n": 1}})
    assert await room.ids(("v", "in", [1, 2])) == "a d"
    assert await room.ids(("v", "in", ["1", True])) == "b c"
    assert await room.ids(("v", "in", [[1], {"n": 1}])) == "e f"
    assert await room.ids(("v", "in", ["absent"])) == ""


@case
async def in_takes_thirty_values(room: Room) -> None:
    await room.add_each("v", {"first": 0, "last": MAX_IN_VALUES - 1, "beyond": MAX_IN_VALUES})
    assert await room.ids(("v", "in", list(range(MAX_IN_VALUES)))) == "first last"


@case
async def in_of_nothing_finds_nothing(room: Room) -> None:
    await room.add_each("v", {"a": 1, "null": None, "empty": []})
    assert await room.ids(("v", "in", [])) == ""


@case
async def array_contains_looks_into_lists_only(room: Room) -> None:
    await room.add_each("v", {"a": ["x", "y"], "b": ["xy"], "c": "x", "d": {"x": "x"}, "e": []})
    assert await room.ids(("v", "array-contains", "x")) == "a"
    assert await room.ids(("v", "array-contains", "z")) == ""


@case
async def array_contains_keeps_types_apart(room: Room) -> None:
    await room.add_each("v", {"int": [1], "text": ["1"], "yes": [True], "map": [{"n": 1}]})
    assert await room.ids(("v", "array-contains", 1)) == "int"
    assert await room.ids(("v", "array-contains", "1")) == "text"
    assert await room.ids(("v", "array-contains", True)) == "yes"
    assert await room.ids(("v", "array-contains", {"n": 1})) == "map"


@case
async def a_dotted_field_leads_into_maps(room: Room) -> None:
    await room.add("a", {"m": {"k": {"deep": 1}, "tags": ["x"]}})
    await room.add("b", {"m": {"k": {"deep": 2}}})
    await room.add("c", {"m": {"k": None}})
    await room.add("d", {"m": "k"})
    await room.add("e", {"m": [{"k": {"deep": 1}}]})
    assert await room.ids(("m.k.deep", "==", 1)) == "a"
    assert await room.ids(("m.k.deep", "!=", 1)) == "b"
    assert await room.ids(("m.k.deep", ">", 0)) == "a b"
    assert await room.ids(("m.tags", "array-contains", "x")) == "a"
    assert await room.ids(("m.k", "==", None)) == "c"
    assert await room.ids(("m.k", "!=", None)) == "a b"


@case
async def field_names_may_be_odd(room: Room) -> None:
    for name in ODD_NAMES:
        await room.add(None, {name: "here"})
    for name in ODD_NAMES:
        assert [one.fields for one in await room.query((name, "==", "here"))] == [{name: "here"}]


@case
async def field_names_inside_maps_may_be_odd(room: Room) -> None:
    await room.add("one", {name: {name: "here"} for name in ODD_NAMES})
    for name in ODD_NAMES:
        assert await room.ids((f"{name}.{name}", "==", "here")) == "one", name
        assert await room.ids((f"{name}.{name}", "==", "elsewhere")) == "", name


@case
async def field_names_differ_by_case(room: Room) -> None:
    await room.add("upper", {"Name": "Ada"})
    await room.add("lower", {"name": "Ada"})
    assert await room.ids(("Name", "==", "Ada")) == "upper"


@case
async def several_filters_must_all_hold(room: Room) -> None:
    await room.add("a", {"n": 1, "kind": "x", "tags": ["t"]})
    await room.add("b", {"n": 2, "kind": "x", "tags": ["t", "u"]})
    await room.add("c", {"n": 3, "kind": "y", "tags": ["u"]})
    assert await room.ids(("kind", "==", "x"), ("n", ">", 1)) == "b"
    assert await room.ids(("n", "in", [1, 2, 3]), ("tags", "array-contains", "u")) == "b c"
    assert await room.ids(("n", ">=", 2), ("kind", "!=", "x")) == "c"
    assert await room.ids(("kind", "==", "x"), ("kind", "==", "y")) == ""


@case
async def filters_for_null_combine_with_others(room: Room) -> None:
    await room.add("a", {"n": None, "kind": "x"})
    await room.add("b", {"n": 1, "kind": "x"})
    await room.add("c", {"n": None, "kind": "y"})
    assert await room.ids(("n", "==", None), ("kind", "==", "x")) == "a"
    assert await room.ids(("kind", "==", "x"), ("n", "!=", None)) == "b"


# Collections


@case
async def collections_are_listed_by_name_without_nested_ones(room: Room) -> None:
    assert room.collection not in await room.store.collections()
    later, nested = f"{room.collection}-later", f"{room.collection}/a/parts"
    await room.add("a", {"n": 1}, collection=later)
    for document_id in ("a", "b"):
        await room.add(document_id, {"n": 1})
    await room.add("x", {"n": 1}, collection=nested)
    found = await room.store.collections()
    assert [name for name in found if name.startswith(room.collection)] == [room.collection, later]
    assert list(found) == sorted(found)


# Order and limits


@case
async def the_limit_cuts_the_answer(room: Room) -> None:
    for number in range(5):
        await room.add(f"d{number}", {"n": number})
    assert len(await room.query(limit=1)) == 1
    assert len(await room.query(limit=3)) == 3
    assert len(await room.query(limit=5)) == 5
    assert len(await room.query(limit=100)) == 5
    assert [one.id for one in await room.query(("n", "==", 4), limit=1)] == ["d4"]


@case
async def a_smaller_limit_gives_the_beginning_of_the_same_answer(room: Room) -> None:
    for name in ("c", "a", "e", "b", "d"):
        await room.add(name, {"n": ord(name) % 3})
    for conditions in ([], [("n", ">=", 0)], [("n", "!=", 7)], [("n", "in", [0, 1, 2])]):
        whole = await room.query(*conditions)
        assert len(whole) == 5
        for limit in range(1, 6):
            assert await room.query(*conditions, limit=limit) == whole[:limit]


@case
async def repeated_queries_answer_in_the_same_order(room: Room) -> None:
    for name in ("c", "a", "e", "b", "d"):
        await room.add(name, {"n": 1})
    first = await room.query(("n", "==", 1))
    assert sorted(one.id for one in first) == ["a", "b", "c", "d", "e"]
    for _ in range(3):
        assert await room.query(("n", "==", 1)) == first
