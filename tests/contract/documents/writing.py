"""Set, merge, update and delete; several writes at once."""

import pytest
from tests.contract.documents.room import Room, case

from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentExists,
    DocumentNotFound,
    Fields,
    Filter,
    Merge,
    Operator,
    Query,
    Set,
    Update,
)

DEEP: Fields = {"a": {"b": {"c": 1, "d": 2}, "e": [1]}, "f": 3}


@case
async def set_replaces_the_whole_document(room: Room) -> None:
    await room.add("one", DEEP)
    await room.write(Set(room.collection, "one", {"a": {"b": 1}}))
    assert await room.get("one") == {"a": {"b": 1}}
    await room.write(Set(room.collection, "one", {}))
    assert await room.get("one") == {}


@case
async def set_and_merge_make_a_document_where_none_is(room: Room) -> None:
    await room.write(Set(room.collection, "set", DEEP))
    await room.write(Merge(room.collection, "merged", DEEP))
    await room.write(Merge(room.collection, "empty", {}))
    assert await room.get("set") == DEEP
    assert await room.get("merged") == DEEP
    assert await room.get("empty") == {}
    assert await room.ids() == "empty merged set"


@case
async def merge_goes_into_maps(room: Room) -> None:
    await room.add("one", DEEP)
    await room.write(Merge(room.collection, "one", {"a": {"b": {"c": 5}, "g": None}, "h": "new"}))
    assert await room.get("one") == {
        "a": {"b": {"c": 5, "d": 2}, "e": [1], "g": None},
        "f": 3,
        "h": "new",
    }


@case
async def merge_replaces_what_is_no_map(room: Room) -> None:
    await room.add("one", {"list": [1, 2], "text": "x", "map": {"a": 1}, "other": {"a": 1}})
    merged = {"list": [3], "text": {"a": {"b": 1}}, "map": 5, "other": {}}
    await room.write(Merge(room.collection, "one", merged))
    assert await room.get("one") == merged
    await room.write(Merge(room.collection, "one", {}))
    assert await room.get("one") == merged


@case
async def merge_takes_a_dot_for_a_part_of_the_name(room: Room) -> None:
    await room.add("one", {"a": {"b": 1}})
    await room.write(Merge(room.collection, "one", {"a.b": 2}))
    assert await room.get("one") == {"a": {"b": 1}, "a.b": 2}


@case
async def update_changes_only_what_its_paths_name(room: Room) -> None:
    await room.add("one", DEEP)
    await room.write(Update(room.collection, "one", {"a.b.c": 5, "f": [1]}))
    assert await room.get("one") == {"a": {"b": {"c": 5, "d": 2}, "e": [1]}, "f": [1]}


@case
async def update_replaces_a_map(room: Room) -> None:
    await room.add("one", DEEP)
    await room.write(Update(room.collection, "one", {"a.b": {"x": {"y": 1}}}))
    assert await room.get("one") == {"a": {"b": {"x": {"y": 1}}, "e": [1]}, "f": 3}
    await room.write(Update(room.collection, "one", {"a": {}}))
    assert await room.get("one") == {"a": {}, "f": 3}


@case
async def update_makes_the_maps_on_its_way(room: Room) -> None:
    await room.add("one", {"text": "x"})
    await room.write(Update(room.collection, "one", {"new.deep.n": 1, "text.n": 2}))
    assert await room.get("one") == {"text": {"n": 2}, "new": {"deep": {"n": 1}}}


@case
async def update_of_nothing_leaves_the_document(room: Room) -> None:
    await room.add("one", DEEP)
    await room.write(Update(room.collection, "one", {}))
    assert await room.get("one") == DEEP


@case
async def update_needs_a_document(room: Room) -> None:
    for changes in ({"a": 1}, {}):
        with pytest.raises(DocumentNotFound):
            await room.write(Update(room.collection, "absent", changes))
    assert await room.get("absent") is None


@case
async def update_finds_odd_names(room: Room) -> None:
    odd = [
        "with space",
        "qu'ote",
        'qu"ote',
        "back`tick",
        "back\\slash",
        "日本",
        "a/b",
        "1st",
        "a[0]",
    ]
    await room.add("one", {name: {name: 1, "other": 2} for name in odd})
    await room.write(Update(room.collection, "one", {f"{name}.{name}": "new" for name in odd}))
    assert await room.get("one") == {name: {name: "new", "other": 2} for name in odd}


@case
async def delete_removes_one_document(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 1})
    await room.write(Delete(room.collection, "a"))
    assert await room.get("a") is None
    assert await room.ids() == "b"
    assert await room.ids(("v", "==", 1)) == "b"
    await room.write(Delete(room.collection, "a"))
    assert await room.ids() == "b"


@case
async def documents_below_a_deleted_one_stay(room: Room) -> None:
    below = f"{room.collection}/a/parts"
    await room.add("a", {"n": 1})
    await room.add("x", {"n": 2}, collection=below)
    await room.write(Delete(room.collection, "a"))
    assert await room.store.get(below, "x") == {"n": 2}
    assert list(await room.store.collections((room.collection, "a"))) == ["parts"]


@case
async def a_query_sees_what_was_written_last(room: Room) -> None:
    await room.add("one", {"v": 1, "m": {"n": 1}, "tags": ["a"]})
    await room.write(Update(room.collection, "one", {"v": 2, "m.n": 2}))
    await room.write(Merge(room.collection, "one", {"tags": ["b"]}))
    assert await room.ids(("v", "==", 1)) == await room.ids(("m.n", "<", 2)) == ""
    assert await room.ids(("tags", "array-contains", "a")) == ""
    assert await room.ids(("v", "==", 2), ("m.n", "==", 2)) == "one"
    assert await room.ids(("tags", "array-contains", "b")) == "one"
    await room.write(Set(room.collection, "one", {"w": 1}))
    assert await room.ids(("v", "==", 2)) == ""
    assert await room.places(by="v") == ""
    assert await room.places(by="w") == "one"


@case
async def several_writes_are_stored_in_order(room: Room) -> None:
    here = room.collection
    await room.add("old", {"n": 0})
    await room.write(
        Create(here, "a", {"n": 1, "list": []}),
        Update(here, "a", {"n": 2}),
        Merge(here, "a", {"more": True}),
        Set(here, "b", {"n": 1}),
        Delete(here, "b"),
        Delete(here, "old"),
        Create(here, "old", {"n": "new"}),
        Create(f"{here}/a/parts", "x", {"n": 3}),
    )
    assert await room.get("a") == {"n": 2, "list": [], "more": True}
    assert await room.get("b") is None
    assert await room.get("old") == {"n": "new"}
    assert [one.id for one in await room.store.query(Query(f"{here}/a/parts"))] == ["x"]


@case
async def of_several_writes_all_are_stored_or_none(room: Room) -> None:
    here = room.collection
    await room.add("taken", {"n": 1})
    with pytest.raises(DocumentExists):
        await room.write(
            Create(here, "first", {}), Delete(here, "taken"), Create(here, "first", {})
        )
    with pytest.raises(DocumentExists):
        await room.write(Update(here, "taken", {"n": 2}), Create(here, "taken", {}))
    with pytest.raises(DocumentNotFound):
        await room.write(Set(here, "first", {}), Update(here, "absent", {"n": 2}))
    assert await room.get("first") is None
    assert await room.get("taken") == {"n": 1}
    assert await room.ids() == "taken"


@case
async def of_many_writes_all_are_stored_or_none(room: Room) -> None:
    here = room.collection
    names = [f"d{number:02}" for number in range(30)]
    await room.write(*(Create(here, one, {"n": 1, "tags": [one]}) for one in names))
    many = [Merge(here, one, {"m": {"n": 2}}) for one in names[:20]]
    with pytest.raises(DocumentExists):
        await room.write(*many, Create(here, "d25", {}))
    with pytest.raises(DocumentNotFound):
        await room.write(*many, Update(here, "absent", {"n": 2}), Create(here, "d25", {}))
    assert [await room.get(one) for one in names] == [{"n": 1, "tags": [one]} for one in names]
    gone = [Delete(here, one) for one in (*names[20:], "absent")]
    await room.write(*many, *gone, Merge(here, "new", {"m": {"n": 2}}), Delete(here, "new"))
    assert await room.get("d00") == {"n": 1, "tags": ["d00"], "m": {"n": 2}}
    found = Query(here, [Filter("m.n", Operator.EQUAL, 2)])
    assert [one.id for one in await room.store.query(found)] == names[:20]
    assert not await room.store.query(Query(here, [Filter("tags", Operator.ARRAY_CONTAINS, "d20")]))
    await room.write(*many, Set(here, "new", {"m": {"n": 2}}), *gone)
    assert len(await room.store.query(found)) == 21


@case
async def no_write_stores_nothing(room: Room) -> None:
    await room.write()
    assert await room.ids() == ""


@case
async def after_a_refusal_the_transaction_goes_on(room: Room) -> None:
    here = room.collection
    await room.add("taken", {"n": 1})
    async with room.transaction() as tx:
        with pytest.raises(DocumentExists):
            await room.store.write(tx, Create(here, "lost", {}), Create(here, "taken", {}))
        await room.store.write(tx, Create(here, "kept", {}))
    assert await room.ids() == "kept taken"


@case
async def what_the_caller_changes_after_a_write_is_not_stored(room: Room) -> None:
    fields: Fields = {"list": [1], "map": {"a": 1}}
    for write in (Set, Merge, Update):
        await room.write(Set(room.collection, "one", {}))
        await room.write(write(room.collection, "one", fields))
        fields["list"].append(2)
        fields["map"]["a"] = 2
        assert await room.get("one") == {"list": [1], "map": {"a": 1}}
        fields = {"list": [1], "map": {"a": 1}}


class Taken(Exception):
    """An error of who writes."""


@case
async def a_conflict_that_is_given_is_raised_and_nothing_is_stored(room: Room) -> None:
    here = room.collection
    await room.add("taken", {"n": 1})
    for write in (Create(here, "taken", {"n": 2}), Update(here, "absent", {"n": 2})):
        with pytest.raises(Taken):
            await write_given(room, write, Taken())
    assert await room.get("taken") == {"n": 1}
    assert await room.ids() == "taken"


@case
async def given_a_conflict_a_write_without_one_is_stored(room: Room) -> None:
    await write_given(room, Create(room.collection, "one", {"n": 1}), Taken())
    await write_given(room, Update(room.collection, "one", {"n": 2}), Taken())
    assert await room.get("one") == {"n": 2}


async def write_given(room: Room, write: Create | Update, conflict: Exception) -> None:
    async with room.transaction() as tx:
        await room.store.write(tx, write, conflict=conflict)
