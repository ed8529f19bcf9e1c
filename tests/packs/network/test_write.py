"""firebase.write, on both databases, wherever they are."""

import asyncio
from typing import Any

import pytest
from tests.packs.network.conftest import Network

from toolgate.ports.documents import StoreContended

pytestmark = pytest.mark.anyio

MIB = 1_048_576


async def test_set_replaces_a_document(network: Network) -> None:
    await network.write("firestore", "notes/a", {"x": 1, "map": {"y": 2}})
    answer = await network.write("firestore", "notes/a", {"z": 3})
    assert "key" not in answer
    assert answer["metadata"]["operation"] == "set"
    assert await network.read("firestore", "notes/a") == {"z": 3}


async def test_merge_keeps_what_is_not_named(network: Network) -> None:
    await network.write("firestore", "notes/a", {"x": 1, "map": {"y": 2}}, merge=True)
    await network.write("firestore", "notes/a", {"map": {"z": 3}}, merge=True)
    assert await network.read("firestore", "notes/a") == {"x": 1, "map": {"y": 2, "z": 3}}


@pytest.mark.parametrize("transaction", [False, True])
async def test_update_changes_fields_of_a_document(network: Network, transaction: bool) -> None:
    await network.write("firestore", "notes/a", {"x": 1, "map": {"y": 2, "z": 3}})
    change = {"map.y": 5, "new": True}
    await network.write("firestore", "notes/a", change, operation="update", transaction=transaction)
    stored = {"x": 1, "map": {"y": 5, "z": 3}, "new": True}
    assert await network.read("firestore", "notes/a") == stored


@pytest.mark.parametrize("transaction", [False, True])
async def test_update_of_no_document_is_not_found(network: Network, transaction: bool) -> None:
    error = await network.refused(
        "firebase.write",
        database="firestore",
        path="notes/a",
        data={"x": 1},
        operation="update",
        transaction=transaction,
    )
    assert (error["code"], error["data"]["field"]) == (-32200, "path")
    assert (await network.read("firestore", "notes")) == []


@pytest.mark.parametrize("database", ["firestore", "realtime"])
@pytest.mark.parametrize("transaction", [False, True])
async def test_push_makes_keys_that_sort_by_time(
    network: Network, database: str, transaction: bool
) -> None:
    made = [
        (await network.write(database, "log", {"n": n}, operation="push", transaction=transaction))[
            "key"
        ]
        for n in range(5)
    ]
    assert made == sorted(set(made))
    assert {len(key) for key in made} == {20}
    for number, key in enumerate(made):
        assert await network.read(database, f"log/{key}") == {"n": number}


@pytest.mark.parametrize("database", ["firestore", "realtime"])
@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("data", [None, {}])
async def test_delete_removes_and_is_no_error_where_nothing_is(
    network: Network, database: str, transaction: bool, data: Any
) -> None:
    await network.write(database, "notes/a", {"x": 1})
    for _ in range(2):
        answer = await network.write(
            database, "notes/a", data, operation="delete", transaction=transaction
        )
        assert answer["metadata"]["operation"] == "delete"
    error = await network.refused("firebase.read", database=database, path="notes/a")
    assert error["code"] == -32200


@pytest.mark.parametrize("transaction", [False, True])
async def test_realtime_update_changes_what_it_names(network: Network, transaction: bool) -> None:
    await network.write("realtime", "room", {"a": {"b": 1, "c": 2}, "d": 3})
    change = {"a/b": 5, "d": None, "e": [1, 2]}
    await network.write("realtime", "room", change, operation="update", transaction=transaction)
    assert await network.read("realtime", "room") == {"a": {"b": 5, "c": 2}, "e": [1, 2]}


@pytest.mark.parametrize("transaction", [False, True])
@pytest.mark.parametrize("nothing", [None, {}, [], {"x": {"y": None}}])
async def test_nothing_in_the_realtime_database_vanishes_with_its_parents(
    network: Network, transaction: bool, nothing: Any
) -> None:
    await network.write("realtime", "a/b/c", 1)
    await network.write("realtime", "a/b/c", nothing, transaction=transaction)
    assert (await network.refused("firebase.read", database="realtime", path="a"))["code"] == -32200


async def test_sibling_paths_that_are_written_at_once_both_stay(network: Network) -> None:
    writes = [network.write("realtime", f"room/n{n}", n) for n in range(20)]
    await asyncio.gather(*writes)
    assert await network.read("realtime", "room") == {f"n{n}": n for n in range(20)}


async def test_transactions_at_once_all_count(network: Network) -> None:
    """What is merged in by one is there for the next: none is lost, or it is told."""
    merges = [
        network.call(
            "firebase.write", database="firestore", path="notes/a", data={f"n{n}": n},
            merge=True, transaction=True,
        )
        for n in range(8)
    ]  # fmt: skip
    outcomes = await asyncio.gather(*merges)
    done = {f"n{n}": n for n, one in enumerate(outcomes) if one.error is None}
    assert {one.body["code"] for one in outcomes if one.error} <= {-32201}
    assert done
    assert await network.read("firestore", "notes/a") == done


async def test_contention_is_a_conflict(demo: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    async def contended(*_: Any) -> None:
        raise StoreContended("Others change the same.")

    world = demo.kit.app.worlds["network"].world
    for store in (world.documents, world.tree):
        monkeypatch.setattr(store, "transact", contended)
    for database in ("firestore", "realtime"):
        error = await demo.refused(
            "firebase.write", database=database, path="notes/a", data={"x": 1}, transaction=True
        )
        assert (error["code"], error["data"]["name"]) == (-32201, "CONFLICT")


WRONG: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "no data": ({"database": "realtime", "path": "a"}, -32301, "data", "REQUIRED_FIELD"),
    "another operation": (
        {"database": "realtime", "path": "a", "data": 1, "operation": "move"},
        -32300, "operation", "VALIDATION_ERROR",
    ),
    "set on a collection": (
        {"database": "firestore", "path": "a", "data": {}}, -32302, "path", "INVALID_PATH",
    ),
    "delete of a collection": (
        {"database": "firestore", "path": "a", "data": None, "operation": "delete"},
        -32302, "path", "INVALID_PATH",
    ),
    "push on a document": (
        {"database": "firestore", "path": "a/b", "data": {}, "operation": "push"},
        -32302, "path", "INVALID_PATH",
    ),
    "a reserved name": (
        {"database": "firestore", "path": "a/__b__", "data": {}}, -32302, "path", "INVALID_PATH",
    ),
    "a path that is too deep": (
        {"database": "realtime", "path": "/".join("a" * 33), "data": 1},
        -32302, "path", "INVALID_PATH",
    ),
    "a list in Firestore": (
        {"database": "firestore", "path": "a/b", "data": [1]}, -32302, "data", "INVALID_DATA_TYPE",
    ),
    "null in Firestore": (
        {"database": "firestore", "path": "a/b", "data": None}, -32302, "data", "INVALID_DATA_TYPE",
    ),
    "a list in a list in Firestore": (
        {"database": "firestore", "path": "a/b", "data": {"x": [[1]]}},
        -32302, "data", "INVALID_DATA_TYPE",
    ),
    "an integer of 65 bits": (
        {"database": "realtime", "path": "a/b", "data": {"x": 2**64}},
        -32302, "data", "INVALID_DATA_TYPE",
    ),
    "half a character": (
        {"database": "realtime", "path": "a/b", "data": "\ud800"},
        -32302, "data", "INVALID_DATA_TYPE",
    ),
    "no field to update": (
        {"database": "firestore", "path": "a/b", "data": {}, "operation": "update"},
        -32300, "data", "VALIDATION_ERROR",
    ),
    "a field that is none": (
        {"database": "firestore", "path": "a/b", "data": {"a..b": 1}, "operation": "update"},
        -32300, "data", "VALIDATION_ERROR",
    ),
    "an update that is no object": (
        {"database": "realtime", "path": "a/b", "data": [1], "operation": "update"},
        -32302, "data", "INVALID_DATA_TYPE",
    ),
    "null that is pushed": (
        {"database": "realtime", "path": "a/b", "data": None, "operation": "push"},
        -32302, "data", "INVALID_DATA_TYPE",
    ),
    **{
        f"a key with {sign}": (
            {"database": "realtime", "path": "a", "data": {"x": {f"b{sign}c": 1}}},
            -32300, "data", "VALIDATION_ERROR",
        )
        for sign in ".$#[]/"
    },
    "merge in the realtime database": (
        {"database": "realtime", "path": "a", "data": 1, "merge": True},
        -32300, "merge", "VALIDATION_ERROR",
    ),
    "merge with push": (
        {"database": "firestore", "path": "a", "data": {}, "merge": True, "operation": "push"},
        -32300, "merge", "VALIDATION_ERROR",
    ),
    "an update of a path and what is below": (
        {
            "database": "realtime", "path": "a", "data": {"x": 1, "x/y": 2},
            "operation": "update", "transaction": True,
        },
        -32300, "data", "VALIDATION_ERROR",
    ),
    "more than 20,000 values": (
        {"database": "realtime", "path": "a", "data": [1] * 20_000},
        -32300, "data", "SIZE_LIMIT_EXCEEDED",
    ),
    "more than a MiB": (
        {"database": "realtime", "path": "a", "data": "x" * (MIB - 1)},
        -32300, "data", "SIZE_LIMIT_EXCEEDED",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_write_is_named_and_changes_nothing(demo: Network, what: str) -> None:
    arguments, code, field, name = WRONG[what]
    error = await demo.refused("firebase.write", **arguments)
    assert (error["code"], error["data"]["field"], error["data"]["name"]) == (code, field, name)
    assert error["data"]["reason"]
    assert error["data"]["suggestion"]
    assert await demo.read("firestore", "a") == []
    assert (await demo.refused("firebase.read", database="realtime", path="a"))["code"] == -32200


async def test_a_mib_of_data_is_stored(network: Network) -> None:
    text = "x" * (MIB - 2)
    await network.write("realtime", "large", text)
    assert await network.read("realtime", "large") == text


async def test_thousands_of_values_are_stored(network: Network) -> None:
    values = {f"k{n:05}": n for n in range(5_000)}
    await network.write("realtime", "many", values)
    assert await network.read("realtime", "many") == values
    one = {"orderBy": "$value", "startAt": 4_999}
    assert await network.read("realtime", "many", query=one) == {"k04999": 4_999}


async def test_a_write_is_audited_and_a_dry_run_stores_nothing(demo: Network) -> None:
    arguments = {"database": "realtime", "path": "dry", "data": 1}
    tried = await demo.kit.call("firebase.write", dry_run=True, **arguments)
    assert tried.error is None
    assert (await demo.refused("firebase.read", database="realtime", path="dry"))["code"] == -32200
    await demo.write(**arguments)
    rows = [row for row in await demo.kit.audit_rows() if row["tool_name"] == "firebase.write"]
    assert {row["error_type"] for row in rows} == {"dry_run", None}


async def test_a_dry_run_where_not_all_is_in_the_database_is_refused(at_firebase: Network) -> None:
    arguments = {"database": "realtime", "path": "dry", "data": 1}
    tried = await at_firebase.kit.call("firebase.write", dry_run=True, **arguments)
    assert tried.body["code"] == -32101
    error = await at_firebase.refused("firebase.read", database="realtime", path="dry")
    assert error["code"] == -32200
