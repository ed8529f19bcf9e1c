"""Values that the store works out as it writes."""

from datetime import UTC, datetime, timedelta

from tests.contract.documents.room import Room, case

from toolgate.ports.documents import Create, Fields, Merge, Set, Update
from toolgate.ports.rules import LARGEST_INTEGER, SMALLEST_INTEGER
from toolgate.ports.transforms import (
    ArrayRemove,
    ArrayUnion,
    DeleteField,
    Increment,
    ServerTimestamp,
)

CLOCKS_DIFFER = timedelta(minutes=5)


async def change(room: Room, before: Fields, changes: Fields) -> Fields | None:
    """What an update makes of a document."""
    await room.write(Set(room.collection, "one", before))
    await room.write(Update(room.collection, "one", changes))
    return await room.get("one")


@case
async def increment_adds_to_a_number(room: Room) -> None:
    after = await change(
        room,
        {"int": 5, "float": 1.5, "m": {"n": 1}},
        {"int": Increment(2), "float": Increment(2), "m.n": Increment(-3)},
    )
    assert after == {"int": 7, "float": 3.5, "m": {"n": -2}}
    assert type(after["int"]) is int
    assert await change(room, {"n": 5}, {"n": Increment(0.5)}) == {"n": 5.5}


@case
async def increment_replaces_what_is_no_number(room: Room) -> None:
    before = {"text": "5", "yes": True, "null": None, "list": [1], "map": {"n": 1}}
    after = await change(room, before, {name: Increment(2) for name in before})
    assert after == dict.fromkeys(before, 2)
    assert await change(room, {}, {"absent": Increment(2.5)}) == {"absent": 2.5}
    assert await change(room, {"a": 1}, {"a.b": Increment(3)}) == {"a": {"b": 3}}


@case
async def increment_stops_at_the_ends_of_64_bits(room: Room) -> None:
    after = await change(
        room,
        {"most": LARGEST_INTEGER - 1, "least": SMALLEST_INTEGER},
        {"most": Increment(5), "least": Increment(-1)},
    )
    assert after == {"most": LARGEST_INTEGER, "least": SMALLEST_INTEGER}


@case
async def union_adds_what_a_list_lacks(room: Room) -> None:
    before = {"list": [1, "a", None], "m": {"list": [{"k": 1}]}}
    changes = {
        "list": ArrayUnion(["b", 1.0, "b", None, True]),
        "m.list": ArrayUnion([{"k": 1}, {"k": 2}]),
    }
    after = await change(room, before, changes)
    assert after == {"list": [1, "a", None, "b", True], "m": {"list": [{"k": 1}, {"k": 2}]}}


@case
async def union_replaces_what_is_no_list(room: Room) -> None:
    before = {"text": "x", "null": None, "map": {"a": 1}}
    after = await change(room, before, {name: ArrayUnion([1, 1, 2]) for name in before})
    assert after == {name: [1, 2] for name in before}
    assert await change(room, {}, {"absent": ArrayUnion([])}) == {"absent": []}


@case
async def removal_takes_every_equal_value_from_a_list(room: Room) -> None:
    before = {"list": [1, "a", 1.0, True, None, "a"], "m": {"list": [{"k": 1}, {"k": 2}]}}
    changes = {"list": ArrayRemove([1, "a", "b"]), "m.list": ArrayRemove([{"k": 1}])}
    assert await change(room, before, changes) == {
        "list": [True, None],
        "m": {"list": [{"k": 2}]},
    }


@case
async def removal_from_what_is_no_list_leaves_an_empty_one(room: Room) -> None:
    before = {"text": "x", "null": None, "map": {"a": 1}}
    after = await change(room, before, {name: ArrayRemove(["x"]) for name in before})
    assert after == {name: [] for name in before}
    assert await change(room, {}, {"absent": ArrayRemove(["x"])}) == {"absent": []}


@case
async def a_deleted_field_is_gone(room: Room) -> None:
    before = {"a": 1, "m": {"n": 1, "o": 2}, "list": [1]}
    changes = {"a": DeleteField(), "m.n": DeleteField(), "absent": DeleteField()}
    assert await change(room, before, changes) == {"m": {"o": 2}, "list": [1]}
    assert await change(room, {"m": {"n": 1}}, {"m.n": DeleteField()}) == {"m": {}}


@case
async def deleting_below_what_is_no_map_changes_nothing(room: Room) -> None:
    before = {"text": "x"}
    assert await change(room, before, {"text.n": DeleteField(), "m.n": DeleteField()}) == before
    deep = {"text": {"n": DeleteField()}, "m": {"n": {"o": DeleteField()}}}
    await room.write(Merge(room.collection, "one", deep))
    assert await room.get("one") == before


@case
async def merge_works_out_values_where_they_are(room: Room) -> None:
    await room.add("one", {"n": 1, "m": {"n": 1, "list": [1], "gone": 1, "kept": 1}})
    below = {"n": Increment(2), "list": ArrayUnion([2]), "gone": DeleteField()}
    await room.write(Merge(room.collection, "one", {"n": Increment(1), "m": below}))
    assert await room.get("one") == {"n": 2, "m": {"n": 3, "list": [1, 2], "kept": 1}}
    await room.write(Merge(room.collection, "new", {"m": below}))
    assert await room.get("new") == {"m": {"n": 2, "list": [2]}}


@case
async def values_of_a_whole_map_are_worked_out_from_nothing(room: Room) -> None:
    fields: Fields = {
        "n": Increment(2),
        "list": ArrayUnion([1, 1]),
        "less": ArrayRemove([1]),
        "gone": DeleteField(),
        "m": {"n": Increment(3), "gone": DeleteField(), "kept": 1},
    }
    expected = {"n": 2, "list": [1], "less": [], "m": {"n": 3, "kept": 1}}
    await room.write(Create(room.collection, "created", fields))
    assert await room.get("created") == expected
    await room.add("set", {"n": 5, "list": [5], "m": {"n": 5}})
    await room.write(Set(room.collection, "set", fields))
    assert await room.get("set") == expected
    assert await change(room, {"m": {"n": 5, "old": 1}}, {"m": fields["m"]}) == {
        "m": {"n": 3, "kept": 1}
    }


@case
async def a_timestamp_is_the_time_of_the_write(room: Room) -> None:
    now = datetime.now(UTC)
    stamp = ServerTimestamp()
    await room.add("b", {"at": "before", "m": {"at": 1}})
    await room.write(
        Create(room.collection, "a", {"at": stamp, "m": {"at": stamp}}),
        Update(room.collection, "b", {"at": stamp, "m.at": stamp}),
        Merge(room.collection, "c", {"at": stamp, "m": {"at": stamp}}),
    )
    found = [await room.get(one) for one in "abc"]
    [moment] = {time for one in found if one for time in (one["at"], one["m"]["at"])}
    assert moment.endswith("Z")
    assert abs(datetime.fromisoformat(moment) - now) < CLOCKS_DIFFER


@case
async def several_writes_build_on_each_other(room: Room) -> None:
    await room.write(
        Create(room.collection, "one", {"n": 1}),
        Update(room.collection, "one", {"n": Increment(1), "list": ArrayUnion([1])}),
        Merge(room.collection, "one", {"n": Increment(1), "list": ArrayUnion([2])}),
    )
    assert await room.get("one") == {"n": 3, "list": [1, 2]}


@case
async def what_was_worked_out_is_found(room: Room) -> None:
    await room.add("one", {"n": 1, "list": []})
    await room.write(Update(room.collection, "one", {"n": Increment(1), "list": ArrayUnion(["x"])}))
    assert await room.ids(("n", "==", 2), ("list", "array-contains", "x")) == "one"
    assert await room.ids(("n", "==", 1)) == ""
