"""What a tree keeps, and how it comes back."""

from typing import Any

import pytest
from tests.contract.tree.stores import Tree

from toolgate.ports.tree import TreeRefused

pytestmark = pytest.mark.anyio

SCALARS = [False, True, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.25, 1e300, "", "0", "null", "ä\0\n😀"]


async def test_what_was_never_written_is_null(tree: Tree) -> None:
    assert await tree.get() is None
    assert await tree.get("no/such/path") is None
    assert await tree.get("no", shallow=True) is None


@pytest.mark.parametrize("value", SCALARS, ids=repr)
async def test_a_scalar_comes_back_as_it_was(tree: Tree, value: Any) -> None:
    await tree.set("a/b", value)
    found = await tree.get("a/b")
    assert (found, type(found)) == (value, type(value))
    assert await tree.get() == {"a": {"b": value}}


async def test_a_scalar_can_be_the_whole_tree(tree: Tree) -> None:
    await tree.set("", 5)
    assert await tree.get() == 5
    assert await tree.get("a") is None
    assert await tree.get(shallow=True) == 5


async def test_a_part_of_what_was_written_is_read_by_its_own_path(tree: Tree) -> None:
    await tree.set("users", {"ada": {"name": "Ada", "tags": {"x": True}}, "bob": {"name": "Bob"}})
    assert await tree.get("users/ada/tags/x") is True
    assert await tree.get("users/ada/tags") == {"x": True}
    assert await tree.get("/users/bob/") == {"name": "Bob"}
    assert await tree.get("users/ada/name/first") is None


async def test_a_key_that_begins_like_another_is_another(tree: Tree) -> None:
    await tree.set("", {"a": {"b": 1}, "ab": 2, "a b": 3, "a!": 4, "a-": 5, "A": 6})
    assert await tree.get("a") == {"b": 1}
    await tree.remove("a")
    assert await tree.get() == {"A": 6, "a b": 3, "a!": 4, "a-": 5, "ab": 2}


@pytest.mark.parametrize("nothing", [None, {}, [], {"x": {}}, {"x": {"y": [None, {}]}}], ids=repr)
async def test_null_and_what_is_empty_vanish(tree: Tree, nothing: Any) -> None:
    await tree.set("a", {"kept": 1, "gone": nothing})
    assert await tree.get("a") == {"kept": 1}
    await tree.set("a", nothing)
    assert await tree.get() is None


async def test_a_parent_vanishes_with_its_last_child(tree: Tree) -> None:
    await tree.set("a/b/c", 1)
    await tree.remove("a/b/c")
    assert await tree.get() is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (["x", "y"], ["x", "y"]),
        ({"0": "x", "1": "y"}, ["x", "y"]),
        (["x", None, "z"], ["x", None, "z"]),
        ({"1": "x"}, [None, "x"]),
        ({"2": "x"}, {"2": "x"}),
        ({"1": "x", "3": "y"}, [None, "x", None, "y"]),
        ({"1": "x", "4": "y"}, {"1": "x", "4": "y"}),
        ({"0": "x", "a": "y"}, {"0": "x", "a": "y"}),
        ({"00": "x"}, {"00": "x"}),
        ({"-1": "x", "0": "y"}, {"-1": "x", "0": "y"}),
        ({"99999999999999999999": 1}, {"99999999999999999999": 1}),
        ([[1], [2, [3]]], [[1], [2, [3]]]),
        ([{"a": [1]}], [{"a": [1]}]),
        ([None, None, None, 1], {"3": 1}),
    ],
    ids=repr,
)
async def test_a_list_is_an_object_of_indexes(tree: Tree, value: Any, read: Any) -> None:
    await tree.set("list", value)
    assert await tree.get("list") == read


async def test_the_elements_of_a_list_have_paths(tree: Tree) -> None:
    await tree.set("list", ["a", "b", "c"])
    assert await tree.get("list/1") == "b"
    await tree.remove("list/1")
    assert await tree.get("list") == ["a", None, "c"]
    assert await tree.get("list", shallow=True) == {"0": True, "2": True}


async def test_keys_come_in_the_order_of_the_database(tree: Tree) -> None:
    keys = ["-3", "0", "2", "02", "10", "2147483647", "-a", "2147483648", "A", "_", "a", "aa", "ä"]
    keys += ["日", "\uffee", "😀"]
    await tree.set("k", dict.fromkeys(reversed(keys), 1))
    assert list(await tree.get("k")) == keys
    assert list(await tree.get("k", shallow=True)) == keys
    assert await tree.keys("k") == keys


async def test_shallow_tells_the_keys_alone(tree: Tree) -> None:
    await tree.set("s", {"a": {"deep": {"deeper": [1, 2]}}, "b": 1, "3": False})
    assert await tree.get("s", shallow=True) == {"3": True, "a": True, "b": True}
    assert await tree.get("s/b", shallow=True) == 1
    assert await tree.get("", shallow=True) == {"s": True}


ODD_KEYS = ["with space", 'quo"te', "sing'le", "back\\slash", "%", "%2F", "?", "&", "=", "+", ":"]
ODD_KEYS += ["\x80", "\u2028", "😀", "a,b", ".json".removeprefix("."), "x" * 768]


@pytest.mark.parametrize("key", ODD_KEYS, ids=lambda key: ascii(key[:9]))
async def test_any_other_character_may_be_in_a_key(tree: Tree, key: str) -> None:
    await tree.set(key, "here")
    assert await tree.get(key) == "here"
    assert await tree.get() == {key: "here"}


BAD_KEYS = [
    "",
    "a.b",
    "$a",
    "a#",
    "a[",
    "a]",
    "\0",
    "a\x1f",
    "\x7f",
    "x" * 769,
    "é" * 385,
    "\ud800",
]


@pytest.mark.parametrize("key", BAD_KEYS, ids=lambda key: ascii(key[:9]))
async def test_a_key_that_breaks_a_rule_is_refused(tree: Tree, key: str) -> None:
    with pytest.raises(TreeRefused, match=r"[Kk]ey"):
        await tree.set("a", {"b": {key: 1}})
    with pytest.raises(TreeRefused, match=r"[Kk]ey"):
        await tree.set(f"a/{key}/b", 1)
    with pytest.raises(TreeRefused, match=r"[Kk]ey"):
        await tree.get(f"a/{key}/b")
    assert await tree.get() is None


async def test_a_slash_in_a_key_of_a_value_is_refused(tree: Tree) -> None:
    with pytest.raises(TreeRefused, match="must not contain"):
        await tree.set("a", {"b/c": 1})


async def test_32_levels_are_kept_and_33_refused(tree: Tree) -> None:
    value: Any = 1
    for _ in range(30):
        value = {"k": value}
    await tree.set("a/b", value)
    assert await tree.get("a/b") == value
    with pytest.raises(TreeRefused, match="at most 32 keys"):
        await tree.set("a/b/c", value)
    with pytest.raises(TreeRefused, match="at most 32 keys"):
        await tree.get("/".join("k" * 33))


async def test_a_path_has_at_most_768_bytes(tree: Tree) -> None:
    longest = "/".join(["1" * 10] * 31 + ["x" * (768 - 31 * 11)])
    await tree.set(longest, 1)
    assert await tree.get(longest) == 1
    with pytest.raises(TreeRefused, match="at most 768 bytes"):
        await tree.set(longest + "x", 1)


BAD_VALUES = [float("nan"), float("inf"), 2**63, -(2**63) - 1, "\ud800", b"bytes", {1: 2}]


@pytest.mark.parametrize("value", BAD_VALUES, ids=ascii)
async def test_a_value_that_is_not_json_is_refused(tree: Tree, value: Any) -> None:
    with pytest.raises(TreeRefused, match="must be"):
        await tree.set("a", {"b": [value]})
    assert await tree.get() is None


async def test_a_string_has_at_most_10_mib(tree: Tree) -> None:
    with pytest.raises(TreeRefused, match="at most 10,485,760 bytes"):
        await tree.set("a", "é" * (5 * 1024 * 1024) + "x")
