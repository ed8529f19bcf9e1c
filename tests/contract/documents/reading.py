"""Reading and creating."""

import anyio
import pytest
from tests.contract.documents.room import Room, case

from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentExists,
    Fields,
    Filter,
    Json,
    Operator,
    Query,
    StoredDocument,
)


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


@case
async def many_documents_come_in_the_order_asked_for(room: Room) -> None:
    other = f"{room.collection}/a/parts"
    await room.write(
        Create(room.collection, "a", {"n": 1}),
        Create(room.collection, "b", {"n": 2}),
        Create(other, "a", {"n": 3}),
    )
    asked = [(room.collection, "b"), (other, "a"), (room.collection, "absent")]
    asked += [(room.collection, "a"), (room.collection, "b")]
    assert list(await room.store.get_many(asked)) == [
        {"n": 2},
        {"n": 3},
        None,
        {"n": 1},
        {"n": 2},
    ]
    assert list(await room.store.get_many([])) == []


@case
async def documents_lie_at_any_depth(room: Room) -> None:
    collection = room.collection
    for level in range(6):
        await room.add(f"d{level}", {"level": level}, collection=collection)
        assert await room.store.get(collection, f"d{level}") == {"level": level}
        found = await room.store.query(Query(collection))
        assert [one.id for one in found] == [f"d{level}"]
        collection = f"{collection}/d{level}/below"


@case
async def the_collections_of_a_document_are_listed(room: Room) -> None:
    await room.add("x", {}, collection=f"{room.collection}/absent/later")
    await room.add("x", {}, collection=f"{room.collection}/absent/early")
    await room.add("x", {}, collection=f"{room.collection}/absent/early/x/deep")
    await room.add("x", {}, collection=f"{room.collection}/absent2/other")
    assert list(await room.store.collections((room.collection, "absent"))) == ["early", "later"]
    below = f"{room.collection}/absent/early"
    assert list(await room.store.collections((below, "x"))) == ["deep"]
    assert list(await room.store.collections((below, "y"))) == []
    assert await room.get("absent") is None


@case
async def a_collection_ends_with_its_last_document(room: Room) -> None:
    await room.add("a", {})
    assert room.collection in await room.store.collections()
    await room.write(Delete(room.collection, "a"))
    assert room.collection not in await room.store.collections()
    assert await room.query() == []
