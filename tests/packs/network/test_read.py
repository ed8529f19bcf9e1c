"""firebase.read, on both databases, wherever they are."""

from typing import Any

import pytest
from tests.packs.network.conftest import Network

from toolgate.adapters.sql.tree import reading

pytestmark = pytest.mark.anyio

MIXED: dict[str, Any] = {
    "a": {"v": "text"},
    "b": {"v": 2},
    "c": {"v": True},
    "d": {"v": False},
    "e": {"v": {"deep": 1}},
    "f": {"other": 1},
    "g": {"v": -1.5},
}
IN_ORDER = ["f", "d", "c", "g", "b", "a", "e"]
"""By `v`: null, false, true, numbers, strings, objects."""


async def test_a_collection_is_an_array_in_the_order_of_ids(network: Network) -> None:
    for name in ("b", "a", "c"):
        await network.write("firestore", f"things/{name}", {"n": name})
    outcome = await network.call("firebase.read", database="firestore", path="things")
    assert outcome.body["data"] == [{"id": name, "n": name} for name in ("a", "b", "c")]
    assert outcome.body["metadata"]["count"] == 3
    assert "hasMore" not in outcome.body["metadata"]


async def test_a_collection_is_ordered_bounded_and_limited(network: Network) -> None:
    for name, size in {"a": 3, "b": 1, "c": 2}.items():
        await network.write("firestore", f"things/{name}", {"size": size})
    await network.write("firestore", "things/d", {"other": 1})

    async def ids(**query: Any) -> list[str]:
        return [one["id"] for one in await network.read("firestore", "things", query=query)]

    assert await ids(orderBy="size") == ["b", "c", "a"], "without what has no such field"
    assert await ids(orderBy="size", startAt=2) == ["c", "a"]
    assert await ids(orderBy="size", endAt=2) == ["b", "c"]
    assert await ids(orderBy="size", startAt=2, endAt=2) == ["c"]
    assert await ids(startAt="b", endAt="c") == ["b", "c"]
    limited = await network.call(
        "firebase.read", database="firestore", path="things", query={"limit": 2}
    )
    assert limited.body["metadata"]["count"] == 2
    assert limited.body["metadata"]["hasMore"] is True


async def test_an_empty_collection_is_an_empty_array(network: Network) -> None:
    outcome = await network.call("firebase.read", database="firestore", path="nothing")
    assert (outcome.body["data"], outcome.body["metadata"]["count"]) == ([], 0)


@pytest.mark.parametrize(
    ("database", "path"), [("firestore", "a/b"), ("realtime", "a/b"), ("realtime", "a")]
)
async def test_what_is_not_there_is_not_found(network: Network, database: str, path: str) -> None:
    error = await network.refused("firebase.read", database=database, path=path)
    assert error["code"] == -32200
    assert (error["data"]["field"], error["data"]["value"]) == ("path", path)
    assert error["data"]["name"] == "NOT_FOUND"


async def test_a_query_of_nothing_is_not_found_and_one_without_results_is_empty(
    network: Network,
) -> None:
    asked = {"database": "realtime", "path": "room", "query": {"startAt": "z"}}
    assert (await network.refused("firebase.read", **asked))["code"] == -32200
    await network.write("realtime", "room", {"a": 1})
    assert await network.read(**asked) == {}


@pytest.mark.parametrize("value", ["text", 0, 1.5, False, True, {"a": {"b": "c"}}, [1, "b"]])
async def test_what_is_at_a_realtime_path_is_read_down_to_single_values(
    network: Network, value: Any
) -> None:
    await network.write("realtime", "some/place", value)
    assert await network.read("realtime", "some/place") == value
    assert await network.read("realtime", "some") == {"place": value}


async def test_realtime_children_come_in_the_order_of_their_values(network: Network) -> None:
    await network.write("realtime", "mixed", MIXED)

    async def keys(**query: Any) -> list[str]:
        return list(await network.read("realtime", "mixed", query=query))

    assert await keys(orderBy="v") == IN_ORDER
    assert await keys(orderBy="v", limit=3) == IN_ORDER[:3]
    assert await keys(orderBy="v", startAt=True) == IN_ORDER[2:]
    assert await keys(orderBy="v", startAt=-2, endAt=5) == ["g", "b"]
    assert await keys(startAt="c", endAt="e") == ["c", "d", "e"]


async def test_keys_that_are_integers_come_first(network: Network) -> None:
    keys = ["10", "9", "b", "-1", "2", "a", "007"]
    await network.write("realtime", "keys", dict.fromkeys(keys, True))
    ordered = ["-1", "2", "007", "9", "10", "a", "b"]
    assert list(await network.read("realtime", "keys", query={"orderBy": "$key"})) == ordered
    assert list(await network.read("realtime", "keys")) == ordered


async def test_values_are_ordered_by_themselves(network: Network) -> None:
    await network.write("realtime", "scores", {"x": 3, "y": "a", "z": 1})
    found = await network.read("realtime", "scores", query={"orderBy": "$value"})
    assert list(found) == ["z", "x", "y"]


async def test_shallow_is_the_keys(network: Network) -> None:
    await network.write("realtime", "deep", {"a": {"b": {"c": 1}}, "d": 2})
    assert await network.read("realtime", "deep", shallow=True) == {"a": True, "d": True}
    assert await network.read("realtime", "deep/d", shallow=True) == 2


async def test_more_than_can_be_read_at_once_is_told(
    demo: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    await demo.write("realtime", "many", {f"k{n}": n for n in range(300)})
    monkeypatch.setattr(reading, "MOST_ROWS", 299)
    error = await demo.refused("firebase.read", database="realtime", path="many")
    assert (error["code"], error["data"]["name"]) == (-32300, "SIZE_LIMIT_EXCEEDED")
    assert error["data"]["field"] == "path"
    assert len(await demo.read("realtime", "many", query={"limit": 5})) == 5
    assert len(await demo.read("realtime", "many", shallow=True)) == 300


@pytest.mark.parametrize("path", ["a//b", "/a", "a/", "/", "a.b", "a b", "ä", "a/../b", "a#b", ""])
@pytest.mark.parametrize("tool", ["firebase.read", "firebase.write"])
async def test_a_malformed_path_is_invalid(demo: Network, tool: str, path: str) -> None:
    more = {"data": {}} if tool == "firebase.write" else {}
    error = await demo.refused(tool, database="realtime", path=path, **more)
    assert error["code"] == -32302
    assert (error["data"]["field"], error["data"]["value"]) == ("path", path)
    assert error["data"]["name"] == "INVALID_PATH"


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "no database": ({"path": "a"}, -32301, "database"),
    "no path": ({"database": "realtime"}, -32301, "path"),
    "another database": ({"database": "sql", "path": "a"}, -32300, "database"),
    "a number as path": ({"database": "realtime", "path": 5}, -32302, "path"),
    "limit 0": (
        {"database": "realtime", "path": "a", "query": {"limit": 0}}, -32300, "query.limit",
    ),
    "limit 1001": (
        {"database": "firestore", "path": "a", "query": {"limit": 1001}}, -32300, "query.limit",
    ),
    "startAt an object": (
        {"database": "realtime", "path": "a", "query": {"startAt": {}}}, -32302, "query.startAt",
    ),
    "a number without orderBy": (
        {"database": "firestore", "path": "a", "query": {"startAt": 1}}, -32300, "query.startAt",
    ),
    "a number as key": (
        {"database": "realtime", "path": "a", "query": {"endAt": 1}}, -32300, "query.endAt",
    ),
    "an order that is no field": (
        {"database": "firestore", "path": "a", "query": {"orderBy": "a..b"}},
        -32300, "query.orderBy",
    ),
    "an order that is no path": (
        {"database": "realtime", "path": "a", "query": {"orderBy": "a#b"}}, -32300, "query",
    ),
    "an order of a document": (
        {"database": "firestore", "path": "a/b", "query": {"orderBy": "c"}}, -32300, "query",
    ),
    "shallow in Firestore": (
        {"database": "firestore", "path": "a", "shallow": True}, -32300, "shallow",
    ),
    "shallow with a query": (
        {"database": "realtime", "path": "a", "shallow": True, "query": {"limit": 1}},
        -32300, "shallow",
    ),
    "an unknown argument": ({"database": "realtime", "path": "a", "x": 1}, -32300, "x"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_argument_is_named(demo: Network, what: str) -> None:
    arguments, code, field = WRONG[what]
    error = await demo.refused("firebase.read", **arguments)
    assert (error["code"], error["data"]["field"].partition(".str")[0]) == (code, field), error
    assert error["data"]["reason"]
    assert error["data"]["suggestion"]
