"""Queries: order, bounds and limits."""

from typing import Any

import pytest
from tests.contract.tree.stores import Tree

from toolgate.ports.tree import Bound, TreeQuery, TreeRefused

pytestmark = pytest.mark.anyio

MIXED = {
    "nothing": {"other": 1},
    "no": {"v": False},
    "yes": {"v": True},
    "minus": {"v": -5},
    "half": {"v": 1.5},
    "two": {"v": 2},
    "ten": {"v": 10},
    "empty": {"v": ""},
    "digits": {"v": "10"},
    "big": {"v": "B"},
    "small": {"v": "b"},
    "object": {"v": {"w": 0}},
    "list": {"v": [0]},
    "scalar": 3,
}
ORDER = [
    "nothing",
    "scalar",
    "no",
    "yes",
    "minus",
    "half",
    "two",
    "ten",
    "empty",
    "digits",
    "big",
    "small",
    "list",
    "object",
]


@pytest.fixture
async def mixed(tree: Tree) -> Tree:
    await tree.set("m", MIXED)
    return tree


async def test_children_come_by_the_value_below_them(mixed: Tree) -> None:
    assert await mixed.keys("m", order_by="v") == ORDER
    found = await mixed.store.get("m", TreeQuery("v", limit_to_first=2))
    assert found == {"nothing": {"other": 1}, "scalar": 3}


async def test_children_come_by_a_value_further_below(tree: Tree) -> None:
    children = {"a": {"p": {"q": 2}}, "b": {"p": {"q": 1}}, "c": {"p": 0}, "d": {"p": {"q": [0]}}}
    await tree.set("deep", children)
    assert await tree.keys("deep", order_by="p/q") == ["c", "b", "a", "d"]


async def test_children_come_by_their_own_value(tree: Tree) -> None:
    await tree.set("s", {"a": 9, "b": "x", "c": False, "d": {"e": 1}, "f": 9, "10": 9, "9": 9})
    assert await tree.keys("s", order_by="$value") == ["c", "9", "10", "a", "f", "b", "d"]
    assert await tree.keys("s", order_by="$value", equal_to=Bound(9)) == ["9", "10", "a", "f"]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({"start_at": Bound(2)}, ORDER[6:]),
        ({"start_after": Bound(2)}, ORDER[7:]),
        ({"end_at": Bound(2)}, ORDER[:7]),
        ({"end_before": Bound(2)}, ORDER[:6]),
        ({"start_at": Bound(False), "end_at": Bound(1.5)}, ORDER[2:6]),
        ({"equal_to": Bound(None)}, ["nothing", "scalar"]),
        ({"equal_to": Bound(True)}, ["yes"]),
        ({"equal_to": Bound(1)}, []),
        ({"equal_to": Bound("10")}, ["digits"]),
        ({"start_at": Bound("")}, ORDER[8:]),
        ({"end_at": Bound(None)}, ORDER[:2]),
        ({"start_after": Bound(None)}, ORDER[2:]),
        ({"limit_to_first": 3}, ORDER[:3]),
        ({"limit_to_last": 3}, ORDER[-3:]),
        ({"limit_to_last": 100}, ORDER),
        ({"start_at": Bound(0), "limit_to_first": 2}, ["half", "two"]),
        ({"end_at": Bound(10), "limit_to_last": 2}, ["two", "ten"]),
        ({"start_at": Bound(None, "o")}, ORDER[1:]),
        ({"start_after": Bound(None, "nothing")}, ORDER[1:]),
        ({"end_at": Bound(None, "nothing")}, ["nothing"]),
        ({"end_before": Bound(None, "scalar")}, ["nothing"]),
        ({"equal_to": Bound(None, "scalar")}, ["scalar"]),
    ],
    ids=str,
)
async def test_bounds_and_limits_by_a_value(
    mixed: Tree, query: dict[str, Any], keys: list[str]
) -> None:
    assert await mixed.keys("m", order_by="v", **query) == keys


KEYS = ["-1", "3", "20", "a", "ab", "b", "é"]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({}, KEYS),
        ({"limit_to_first": 2}, KEYS[:2]),
        ({"limit_to_last": 2}, KEYS[-2:]),
        ({"limit_to_first": 50}, KEYS),
        ({"start_at": Bound("4")}, KEYS[2:]),
        ({"start_at": Bound("20")}, KEYS[2:]),
        ({"start_after": Bound("20")}, KEYS[3:]),
        ({"start_at": Bound("a")}, KEYS[3:]),
        ({"start_after": Bound("a")}, KEYS[4:]),
        ({"end_at": Bound("a")}, KEYS[:4]),
        ({"end_before": Bound("a")}, KEYS[:3]),
        ({"start_at": Bound("a"), "end_at": Bound("a\uf8ff")}, ["a", "ab"]),
        ({"equal_to": Bound("ab")}, ["ab"]),
        ({"equal_to": Bound("abc")}, []),
        ({"start_at": Bound("b"), "end_at": Bound("a")}, []),
        ({"start_after": Bound("3"), "limit_to_first": 2}, ["20", "a"]),
        ({"end_before": Bound("b"), "limit_to_last": 2}, ["a", "ab"]),
    ],
    ids=str,
)
async def test_bounds_and_limits_by_key(tree: Tree, query: dict[str, Any], keys: list[str]) -> None:
    await tree.set("k", {key: {"deep": {"x": 1, "y": [1]}} for key in reversed(KEYS)})
    await tree.set("k2", 1)
    await tree.set("j", {"z": 1})
    assert await tree.keys("k", **query) == keys
    found = await tree.store.get("k", TreeQuery(**query))
    assert list(found.values()) == [{"deep": {"x": 1, "y": [1]}}] * len(keys)


async def test_a_query_of_the_root_and_of_a_list(tree: Tree) -> None:
    await tree.set("", [{"n": 3}, {"n": 1}, {"n": 2}])
    assert await tree.store.get("", TreeQuery("n", limit_to_last=2)) == {
        "2": {"n": 2},
        "0": {"n": 3},
    }
    assert await tree.keys(limit_to_last=1) == ["2"]


@pytest.mark.parametrize("order_by", ["$key", "$value", "v"])
async def test_a_scalar_and_nothing_have_no_children(tree: Tree, order_by: str) -> None:
    await tree.set("one", 1)
    assert await tree.store.get("one", TreeQuery(order_by)) == {}
    assert await tree.store.get("none", TreeQuery(order_by)) == {}


@pytest.mark.parametrize(
    "query",
    [
        TreeQuery(limit_to_first=1, limit_to_last=1),
        TreeQuery(limit_to_first=0),
        TreeQuery(limit_to_last=-1),
        TreeQuery(start_at=Bound("a"), start_after=Bound("a")),
        TreeQuery(end_at=Bound("a"), end_before=Bound("a")),
        TreeQuery(equal_to=Bound("a"), start_at=Bound("a")),
        TreeQuery(start_at=Bound(1)),
        TreeQuery(start_at=Bound("a", "b")),
        TreeQuery(start_at=Bound("a.b")),
        TreeQuery("$value", start_at=Bound([1])),
        TreeQuery("$value", start_at=Bound(float("nan"))),
        TreeQuery("$value", start_at=Bound(1, "a/b")),
        TreeQuery("$priority"),
        TreeQuery(""),
        TreeQuery("a//b"),
    ],
    ids=str,
)
async def test_a_query_that_breaks_a_rule_is_refused(tree: Tree, query: TreeQuery) -> None:
    with pytest.raises(TreeRefused):
        await tree.store.get("a", query)


async def test_shallow_and_a_query_exclude_each_other(tree: Tree) -> None:
    with pytest.raises(TreeRefused, match="shallow must not be given"):
        await tree.store.get("a", TreeQuery(), shallow=True)


async def test_a_store_that_answers_passes_its_check(tree: Tree) -> None:
    await tree.store.check()
