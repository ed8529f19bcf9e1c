"""Orders, cursors and limits."""

from tests.contract.documents.room import Room, at, beside, case

from toolgate.ports.documents import Json


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


# Orders

MIXED: dict[str, Json] = {
    "null": None,
    "no": False,
    "yes": True,
    "least": -(2**63),
    "minus": -1.5,
    "zero": 0,
    "half": 0.5,
    "big": 2**53,
    "bigger": 2**53 + 1,
    "empty": "",
    "upper": "Z",
    "lower": "a",
    "longer": "aa",
    "accent": "é",
    "wide": "\uff5e",
    "smile": "😀",
    "list0": [],
    "list1": [None],
    "list2": [1],
    "list3": [1, 0],
    "list4": ["a"],
    "map0": {},
    "map1": {"a": 1},
    "map2": {"a": 1, "b": None},
    "map3": {"a": 2},
    "map4": {"b": 0},
}
"""Values in their order, from the least."""


@case
async def without_an_order_documents_come_by_id(room: Room) -> None:
    ids = ["", "B", "a", "a-b", "aa", "b", "é", "\uff5e", "😀"][1:]
    for document_id in reversed(ids):
        await room.add(document_id, {"n": 1})
    assert (await room.places()).split() == ids
    assert (await room.places(("n", "==", 1))).split() == ids
    assert (await room.places(("n", "in", [2, 1]))).split() == ids


@case
async def a_range_orders_by_its_field_and_then_by_id(room: Room) -> None:
    await room.add_each("v", {"d": 1, "c": 2, "b": 1, "a": 3, "e": "text"})
    assert await room.places(("v", ">", 0)) == "b d c a"
    assert await room.places(("v", "!=", 2)) == "b d a e"
    assert await room.places(("v", "not-in", [3])) == "b d c e"
    assert await room.places(("v", "in", [1, 2, 3])) == "a b c d"


@case
async def several_ranges_order_by_the_names_of_their_fields(room: Room) -> None:
    await room.add("p", {"b": 1, "a": 3})
    await room.add("q", {"b": 2, "a": 2})
    await room.add("r", {"b": 3, "a": 2})
    assert await room.places(("b", ">", 0), ("a", ">", 0)) == "q r p"


@case
async def values_of_all_types_have_one_order(room: Room) -> None:
    await room.add_each("v", MIXED)
    await room.add("without", {"other": 1})
    assert (await room.places(by="v")).split() == list(MIXED)
    assert (await room.places(by="-v")).split() == list(reversed(MIXED))


@case
async def equal_values_come_by_id_in_the_direction_of_the_last_field(room: Room) -> None:
    await room.add_each("v", {"b": 1, "a": 1.0, "c": 1, "d": 0})
    assert await room.places(by="v") == "d a b c"
    assert await room.places(by="-v") == "c b a d"
    assert await room.places(by="-v __name__") == "a b c d"
    assert await room.places(by="v -__name__") == "d c b a"


@case
async def documents_without_the_ordered_field_are_left_out(room: Room) -> None:
    await room.add("null", {"v": None, "w": 1})
    await room.add("without", {"w": 1})
    await room.add("one", {"v": 1})
    await room.add("both", {"v": 2, "w": 2})
    assert await room.places(by="v") == "null one both"
    assert await room.places(by="v w") == "null both"
    assert await room.places(("w", "==", 1), by="v") == "null"


@case
async def several_orders_each_have_a_direction(room: Room) -> None:
    for name, first, second in [("a", 1, 1), ("b", 1, 2), ("c", 2, 1), ("d", 2, 2), ("e", 2, 2)]:
        await room.add(name, {"first": first, "second": second})
    assert await room.places(by="first second") == "a b c d e"
    assert await room.places(by="first -second") == "b a e d c"
    assert await room.places(by="-first second") == "c d e a b"
    assert await room.places(by="-first -second") == "e d c b a"
    assert await room.places(by="second first") == "a c b d e"


@case
async def an_order_leads_into_maps(room: Room) -> None:
    await room.add("a", {"m": {"n": 2}})
    await room.add("b", {"m": {"n": 1}})
    await room.add("c", {"m": {}})
    await room.add("d", {"m": 1})
    assert await room.places(by="m.n") == "b a"


@case
async def ids_can_be_turned_round(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 2, "c": 3})
    assert await room.places(by="-__name__") == "c b a"
    assert await room.places(by="__name__") == "a b c"
    assert await room.places(by="-__name__", limit=2) == "c b"


@case
async def an_order_is_completed_by_the_fields_of_ranges(room: Room) -> None:
    await room.add("p", {"kind": "x", "n": 2})
    await room.add("q", {"kind": "x", "n": 1})
    await room.add("r", {"kind": "w", "n": 3})
    await room.add("s", {"kind": "x", "n": -1})
    assert await room.places(("n", ">", 0), by="kind") == "r q p"
    assert await room.places(("n", ">", 0), by="-kind") == "p q r"
    assert await room.places(("n", ">", 0), by="-n") == "r p q"


@case
async def an_order_goes_with_filters_of_other_fields(room: Room) -> None:
    await room.add("p", {"tags": ["t"], "n": 2, "kind": "x"})
    await room.add("q", {"tags": ["t", "u"], "n": 1, "kind": "x"})
    await room.add("r", {"tags": ["u"], "n": 0, "kind": "y"})
    assert await room.places(("tags", "array-contains", "t"), by="n") == "q p"
    assert await room.places(("kind", "==", "x"), by="-n") == "p q"
    assert await room.places(("kind", "in", ["x", "y"]), by="n", limit=2) == "r q"
    assert await room.places(("tags", "array-contains-any", ["u", "t"]), by="n") == "r q p"


# Cursors


@case
async def a_cursor_is_inclusive_or_not_at_both_ends(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 2, "c": 2, "d": 3, "e": 4})
    assert await room.places(by="v", start=at(2)) == "b c d e"
    assert await room.places(by="v", start=beside(2)) == "d e"
    assert await room.places(by="v", end=at(2)) == "a b c"
    assert await room.places(by="v", end=beside(2)) == "a"
    assert await room.places(by="v", start=at(2), end=beside(4)) == "b c d"
    assert await room.places(by="v", start=beside(2), end=at(4), limit=1) == "d"
    assert await room.places(by="v", start=at(3), end=at(2)) == ""


@case
async def a_cursor_follows_the_direction_of_the_order(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 2, "c": 2, "d": 3})
    assert await room.places(by="-v", start=at(2)) == "c b a"
    assert await room.places(by="-v", start=beside(2)) == "a"
    assert await room.places(by="-v", end=at(2)) == "d c b"
    assert await room.places(by="-v", end=beside(2)) == "d"


@case
async def a_cursor_may_lie_between_documents(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 3, "c": "x"})
    for cursor in (at(2), beside(2)):
        assert await room.places(by="v", start=cursor) == "b c"
        assert await room.places(by="v", end=cursor) == "a"


@case
async def a_cursor_with_several_values_names_a_place_more_closely(room: Room) -> None:
    for name, first, second in [("a", 1, 1), ("b", 1, 2), ("c", 1, 2), ("d", 1, 3), ("e", 2, 0)]:
        await room.add(name, {"first": first, "second": second})
    by = "first second"
    assert await room.places(by=by, start=at(1, 2)) == "b c d e"
    assert await room.places(by=by, start=beside(1, 2)) == "d e"
    assert await room.places(by=by, end=at(1, 2)) == "a b c"
    assert await room.places(by=by, end=beside(1, 2)) == "a"
    assert await room.places(by=by, start=beside(1)) == "e"
    assert await room.places(by=by, end=at(1)) == "a b c d"
    assert await room.places(by=by, start=beside(1, 2, "b"), end=at(1, 3)) == "c d"
    assert await room.places(by="first -second", start=at(1, 2)) == "c b a e"
    assert await room.places(by="first -second", end=beside(1, 2)) == "d"


@case
async def a_cursor_may_be_a_value_of_any_type(room: Room) -> None:
    await room.add_each("v", MIXED)
    names = list(MIXED)
    for number, value in enumerate(MIXED.values()):
        before, after = names[: number + 1], names[number:]
        assert (await room.places(by="v", end=at(value))).split() == before, value
        assert (await room.places(by="v", start=at(value))).split() == after, value
        assert (await room.places(by="v", end=beside(value))).split() == before[:-1], value
        assert (await room.places(by="v", start=beside(value))).split() == after[1:], value


@case
async def a_cursor_may_be_an_id(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": 1, "c": 2, "d": 1})
    assert await room.places(start=at("b")) == "b c d"
    assert await room.places(start=beside("b"), end=beside("d")) == "c"
    assert await room.places(by="-__name__", start=beside("c")) == "b a"
    assert await room.places(("v", "==", 1), start=beside("a"), limit=1) == "b"
    assert await room.places(start=beside("bb")) == "c d"


@case
async def a_cursor_goes_by_the_order_that_follows_from_filters(room: Room) -> None:
    await room.add_each("v", {"d": 1, "c": 2, "b": 1, "a": 3})
    assert await room.places(("v", ">", 0), start=at(2)) == "c a"
    assert await room.places(("v", ">", 0), start=beside(1, "b")) == "d c a"
    assert await room.places(("v", ">", 0), end=at(1, "b")) == "b"


@case
async def pages_joined_are_the_whole(room: Room) -> None:
    await room.add_each("v", {f"d{number}": number % 3 for number in range(10)})
    for by in ("v", "-v"):
        whole = (await room.places(by=by)).split()
        pages: list[str] = []
        start = None
        while page := (await room.places(by=by, start=start, limit=3)).split():
            pages += page
            assert len(pages) <= len(whole), "the same page again"
            last = await room.get(page[-1])
            assert last is not None
            start = beside(last["v"], page[-1])
        assert pages == whole
        assert len(whole) == 10
