"""Writes: what they change, what they leave, and that they happen as a whole."""

import time
from typing import Any

import anyio
import pytest
from tests.contract.tree.stores import Tree

from toolgate.ports.tree import (
    Increment,
    Push,
    Remove,
    ServerTime,
    SetValue,
    TreeRefused,
    UpdateChildren,
)

pytestmark = pytest.mark.anyio


async def test_a_set_replaces_all_that_is_there(tree: Tree) -> None:
    await tree.set("a", {"x": 1, "y": {"z": 2}})
    await tree.set("a/y", {"w": 3})
    assert await tree.get("a") == {"x": 1, "y": {"w": 3}}
    await tree.set("a", "scalar")
    assert await tree.get() == {"a": "scalar"}


async def test_a_child_replaces_the_scalar_above_it(tree: Tree) -> None:
    await tree.set("a/b", 1)
    await tree.set("a/b/c/d", 2)
    assert await tree.get() == {"a": {"b": {"c": {"d": 2}}}}
    await tree.set("", 7)
    await tree.set("x", 1)
    assert await tree.get() == {"x": 1}


async def test_removing_below_a_scalar_leaves_it(tree: Tree) -> None:
    await tree.set("a", 1)
    await tree.remove("a/b/c")
    await tree.set("a/b", {})
    assert await tree.get("a") == 1


async def test_an_update_changes_only_what_it_names(tree: Tree) -> None:
    await tree.set("a", {"x": 1, "y": {"p": 1, "q": 2}, "z": 3})
    changes = {"x": None, "y/p": 5, "new/deep/path": [1, 2], "/z/": {"w": True}}
    await tree.write(UpdateChildren("a", changes))
    assert await tree.get("a") == {
        "new": {"deep": {"path": [1, 2]}},
        "y": {"p": 5, "q": 2},
        "z": {"w": True},
    }
    await tree.update("a")
    await tree.update("", a=None, b=1)
    assert await tree.get() == {"b": 1}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"a": 1, "a/b": 2}, "both 'u/a' and 'u/a/b' below it"),
        ({"a/b/c": None, "a": {}}, "both 'u/a' and 'u/a/b/c' below it"),
        ({"a": 1, "/a/": 2}, "twice"),
        ({"": 1}, "must not be empty"),
        ({"/": 1}, "must not be empty"),
        ({"ok": 1, "b.ad": 2}, "must not contain"),
    ],
    ids=str,
)
async def test_an_update_that_breaks_a_rule_changes_nothing(
    tree: Tree, changes: dict[str, Any], rule: str
) -> None:
    await tree.set("u", {"a": {"b": "before"}})
    with pytest.raises(TreeRefused, match=rule):
        await tree.write(UpdateChildren("u", changes))
    assert await tree.get("u") == {"a": {"b": "before"}}


async def test_pushed_children_come_in_the_order_they_were_made(tree: Tree) -> None:
    keys = [await tree.push("list", number) for number in range(3)]
    pushed = [Push("list", number) for number in range(3, 6)]
    await tree.write(*reversed(pushed))
    keys += [one.key for one in pushed]
    assert await tree.get("list") == dict(zip(keys, range(6), strict=True))
    assert await tree.keys("list") == sorted(keys)


async def test_several_writes_happen_in_their_order(tree: Tree) -> None:
    await tree.set("a", {"old": 1})
    await tree.write(
        SetValue("a/x", 1),
        Remove("a"),
        SetValue("a/y/z", 2),
        UpdateChildren("a", {"y/z": 3, "w": 4}),
        SetValue("b/c", 1),
        SetValue("b", 5),
        SetValue("b/d", {"e": 6}),
        SetValue("c", {"f": {"g": 7}}),
        Remove("c/f/g"),
    )
    assert await tree.get() == {"a": {"w": 4, "y": {"z": 3}}, "b": {"d": {"e": 6}}}


async def test_what_a_write_stores_and_removes_replaces_no_scalar(tree: Tree) -> None:
    await tree.set("a", 1)
    await tree.write(SetValue("a/b", 2), Remove("a/b"))
    assert await tree.get() == {"a": 1}


async def test_where_one_write_is_refused_none_happens(tree: Tree) -> None:
    with pytest.raises(TreeRefused):
        await tree.write(SetValue("a", 1), SetValue("b", {"c.d": 1}))
    assert await tree.get() is None


async def test_writing_nothing_is_no_error(tree: Tree) -> None:
    await tree.write()
    await tree.remove("nothing/there")
    assert await tree.get() is None


async def test_the_server_time_is_one_for_the_whole_write(tree: Tree) -> None:
    before = time.time_ns() // 1_000_000
    await tree.write(SetValue("a", ServerTime()), UpdateChildren("b", {"c": [ServerTime()]}))
    after = time.time_ns() // 1_000_000
    told = await tree.get("a")
    assert type(told) is int
    assert before <= told <= after
    assert await tree.get("b/c/0") == told


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        (None, 2, 2),
        (5, 2, 7),
        (5, -7, -2),
        (1, 0.5, 1.5),
        ("text", 3, 3),
        ({"x": 1}, 4, 4),
        (True, 1, 1),
        (2**63 - 1, 1, float(2**63)),
    ],
    ids=repr,
)
async def test_an_increment_adds_to_a_number(
    tree: Tree, before: Any, by: float, after: float
) -> None:
    await tree.set("n", before)
    await tree.set("n", Increment(by))
    assert await tree.get() == {"n": after}


async def test_increments_may_be_anywhere_in_a_value(tree: Tree) -> None:
    await tree.set("a", {"hits": 1, "gone": True, "list": [10, 20]})
    await tree.set("a", {"hits": Increment(1), "list": [1, Increment(5)]})
    assert await tree.get("a") == {"hits": 2, "list": [1, 25]}
    await tree.update("a", hits=Increment(1), other=Increment(1))
    assert await tree.get("a") == {"hits": 3, "list": [1, 25], "other": 1}


@pytest.mark.parametrize(
    "first", [SetValue("a/n", 1), SetValue("a", {"n": 1}), SetValue("a/n/x", 1)], ids=str
)
async def test_one_write_does_not_change_and_then_increment(tree: Tree, first: SetValue) -> None:
    with pytest.raises(TreeRefused, match="use two"):
        await tree.write(first, SetValue("a/n", Increment(1)))


async def test_a_transaction_stores_what_the_work_returns(tree: Tree) -> None:
    await tree.set("account", {"balance": 10})

    def withdraw(account: Any) -> Any:
        return {**account, "balance": account["balance"] - 3, "tags": []}

    assert await tree.transact("account", withdraw) == {"balance": 7}
    assert await tree.get("account") == {"balance": 7}
    assert await tree.transact("account", lambda _: None) is None
    assert await tree.transact("account/n", lambda value: [value, 1]) == [None, 1]
    assert await tree.get() == {"account": {"n": [None, 1]}}


async def test_transactions_at_once_lose_nothing(tree: Tree) -> None:
    async def count() -> None:
        await tree.transact("hits", lambda hits: (hits or 0) + 1)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(count)
    assert await tree.get("hits") == 5


async def test_a_transaction_whose_work_raises_changes_nothing(tree: Tree) -> None:
    await tree.set("n", 1)

    def stop(_: Any) -> Any:
        raise LookupError("not enough")

    with pytest.raises(LookupError, match="not enough"):
        await tree.transact("n", stop)
    with pytest.raises(TreeRefused):
        await tree.transact("n", lambda _: {"a.b": 1})
    assert await tree.get("n") == 1


async def test_a_transaction_may_use_server_values(tree: Tree) -> None:
    await tree.set("n", {"count": 1})
    stored = await tree.transact("n", lambda _: {"count": Increment(1), "at": ServerTime()})
    assert stored["count"] == 2
    assert stored == await tree.get("n")
