"""What passes a filter."""

from tests.contract.documents.room import Room, case

from toolgate.ports.documents import MAX_IN_VALUES, Json

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
        ("not-in", [1]),
        ("not-in", []),
        ("array-contains", 1),
        ("array-contains-any", [1]),
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


@case
async def not_in_finds_every_other_value(room: Room) -> None:
    await room.add_each("v", {"a": 1, "b": "1", "c": True, "d": 2, "e": [1], "f": {"n": 1}})
    await room.add("without", {"other": 1})
    assert await room.ids(("v", "not-in", [1, 2])) == "b c e f"
    assert await room.ids(("v", "not-in", ["1", True])) == "a d e f"
    assert await room.ids(("v", "not-in", [[1], {"n": 1}, 1.0])) == "b c d"
    assert await room.ids(("v", "not-in", ["absent"])) == "a b c d e f"


@case
async def not_in_and_null(room: Room) -> None:
    await room.add_each("v", {"null": None, "one": 1, "two": 2})
    assert await room.ids(("v", "not-in", [1])) == "two"
    assert await room.ids(("v", "not-in", [None])) == ""
    assert await room.ids(("v", "not-in", [1, None])) == ""


@case
async def not_in_of_nothing_finds_what_is_not_null(room: Room) -> None:
    await room.add_each("v", {"null": None, "one": 1, "list": []})
    await room.add("without", {})
    assert await room.ids(("v", "not-in", [])) == "list one"


@case
async def array_contains_any_looks_into_lists_only(room: Room) -> None:
    await room.add_each("v", {"a": ["x", "y"], "b": ["z"], "c": "x", "d": {"x": "x"}, "e": []})
    assert await room.ids(("v", "array-contains-any", ["x", "z"])) == "a b"
    assert await room.ids(("v", "array-contains-any", ["y"])) == "a"
    assert await room.ids(("v", "array-contains-any", ["absent"])) == ""
    assert await room.ids(("v", "array-contains-any", [])) == ""


@case
async def array_contains_any_keeps_types_apart(room: Room) -> None:
    await room.add_each("v", {"int": [1], "text": ["1"], "yes": [True], "map": [{"n": 1}]})
    assert await room.ids(("v", "array-contains-any", [1, "2"])) == "int"
    assert await room.ids(("v", "array-contains-any", ["1", {"n": 1}])) == "map text"
    assert await room.ids(("v", "array-contains-any", [True, 2])) == "yes"


@case
async def array_contains_any_does_not_look_for_null(room: Room) -> None:
    await room.add_each("v", {"null": [None], "one": [1], "both": [1, None]})
    assert await room.ids(("v", "array-contains-any", [None])) == ""
    assert await room.ids(("v", "array-contains-any", [None, 1])) == "both one"


@case
async def each_document_is_found_once(room: Room) -> None:
    await room.add_each("v", {"a": ["x", "y", "x"], "b": ["y"]})
    found = await room.query(("v", "array-contains-any", ["x", "y"]))
    assert [one.id for one in found] == ["a", "b"]
    assert [one.id for one in await room.query(("v", "array-contains", "x"))] == ["a"]


@case
async def new_operators_combine_with_others(room: Room) -> None:
    await room.add("a", {"n": 1, "kind": "x", "tags": ["t"]})
    await room.add("b", {"n": 2, "kind": "x", "tags": ["t", "u"]})
    await room.add("c", {"n": 3, "kind": "y", "tags": ["u"]})
    assert await room.ids(("tags", "array-contains-any", ["t", "u"]), ("kind", "==", "x")) == "a b"
    assert await room.ids(("tags", "array-contains-any", ["u"]), ("n", ">", 2)) == "c"
    assert await room.ids(("n", "not-in", [1]), ("kind", "==", "x")) == "b"
    assert await room.ids(("kind", "not-in", ["y"]), ("n", ">", 1)) == "b"
