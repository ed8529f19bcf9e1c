"""What is asked of a Realtime Database, and what its refusals become."""

from typing import Any

import pytest
from tests.identity.publisher import Answer, publishing
from tests.patience import PATIENT
from tests.rtdb.wire_server import Refused, WireServer

from toolgate.adapters.rtdb import RealtimeDatabase
from toolgate.adapters.rtdb.store import ATTEMPTS
from toolgate.db.transactions import Transaction
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import StoreContended, StoreUnavailable
from toolgate.ports.tree import (
    Bound,
    Increment,
    Push,
    Remove,
    ServerTime,
    SetValue,
    TreeQuery,
    TreeWrite,
    UpdateChildren,
)

pytestmark = pytest.mark.anyio


def asked(rtdb: WireServer) -> list[tuple[str, str, dict[str, str], Any]]:
    return [
        (one.method, "/".join(one.keys), one.asked, one.value() if one.body else None)
        for one in rtdb.requests
    ]


@pytest.mark.parametrize(
    ("writes", "request_"),
    [
        ([SetValue("a/b", {"c": [1]})], ("PUT", "a/b", {"c": {"0": 1}})),
        ([SetValue("", 5)], ("PUT", "", 5)),
        ([SetValue("a", ServerTime())], ("PUT", "a", {".sv": "timestamp"})),
        ([SetValue("a", Increment(2))], ("PUT", "a", {".sv": {"increment": 2}})),
        ([Push("a", 1, "-key")], ("PUT", "a/-key", 1)),
        ([Remove("a/b")], ("DELETE", "a/b", None)),
        ([SetValue("a/b", {})], ("DELETE", "a/b", None)),
        ([UpdateChildren("u", {"a": 1, "b/c": None})], ("PATCH", "u", {"a": 1, "b/c": None})),
        ([SetValue("x/a/b", 1), Remove("x/a/c")], ("PATCH", "x/a", {"b": 1, "c": None})),
        ([SetValue("a", 1), SetValue("b/c", 2)], ("PATCH", "", {"a": 1, "b/c": 2})),
    ],
    ids=str,
)
async def test_a_write_is_one_request(
    store: RealtimeDatabase,
    rtdb: WireServer,
    tx: Transaction,
    writes: list[TreeWrite],
    request_: tuple[str, str, Any],
) -> None:
    await store.write(tx, *writes)
    method, path, body = request_
    assert asked(rtdb) == [(method, path, {"print": "silent"}, body)]


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        (TreeQuery(), {"orderBy": '"$key"'}),
        (TreeQuery("a/b", limit_to_first=3), {"orderBy": '"a/b"', "limitToFirst": "3"}),
        (TreeQuery("$value", limit_to_last=3), {"orderBy": '"$value"', "limitToLast": "3"}),
        (
            TreeQuery("v", start_at=Bound("x", "k"), end_before=Bound(5)),
            {"orderBy": '"v"', "startAt": '"x","k"', "endBefore": "5"},
        ),
        (
            TreeQuery("v", start_after=Bound(None), end_at=Bound(True)),
            {"orderBy": '"v"', "startAfter": "null", "endAt": "true"},
        ),
        (TreeQuery(equal_to=Bound("é&=")), {"orderBy": '"$key"', "equalTo": '"é&="'}),
    ],
    ids=str,
)
async def test_a_query_is_sent_as_json_in_parameters(
    store: RealtimeDatabase, rtdb: WireServer, query: TreeQuery, parameters: dict[str, str]
) -> None:
    await store.get("list", query)
    assert asked(rtdb) == [("GET", "list", parameters, None)]


async def test_shallow_and_the_namespace_are_parameters(
    rtdb: WireServer, outbound: Outbound
) -> None:
    store = RealtimeDatabase(outbound, f"{rtdb.url}/", namespace="demo", timeout_seconds=PATIENT)
    await store.get("a", shallow=True)
    await store.check()
    assert asked(rtdb) == [
        ("GET", "a", {"shallow": "true", "ns": "demo"}, None),
        ("GET", "toolgate/check", {"ns": "demo"}, None),
    ]


async def test_the_token_goes_along_with_every_request(
    rtdb: WireServer, outbound: Outbound, tx: Transaction
) -> None:
    async def token() -> str:
        return "secret"

    rtdb.token = "secret"
    store = RealtimeDatabase(outbound, rtdb.url, token=token, timeout_seconds=PATIENT)
    await store.write(tx, SetValue("a", 1))
    assert await store.transact(tx, "a", lambda value: value + 1) == 2
    assert await store.get("a") == 2
    with pytest.raises(StoreUnavailable, match=r"denies permission.*Unauthorized request"):
        await RealtimeDatabase(outbound, rtdb.url, timeout_seconds=PATIENT).get("a")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"error": "Permission denied"}, "denies permission.*database.*It says: Permission"),
        (403, None, "denies permission"),
        (404, {"error": "404 Not Found"}, "no Realtime Database at 127.0.0.1"),
        (400, {"error": "Invalid path"}, "refused the request: Invalid path"),
        (400, [], "refused the request: status 400"),
        (413, {"error": {"not": "text"}}, "refused the request: status 413"),
        (429, {"error": "slow down"}, "quota of Realtime Database is used up"),
        (302, None, "does not answer"),
        (500, {"error": "Internal"}, "does not answer"),
        (503, None, "does not answer"),
    ],
)
async def test_a_refusal_becomes_a_message(
    store: RealtimeDatabase, rtdb: WireServer, tx: Transaction, status: int, body: Any, message: str
) -> None:
    rtdb.failures = [Refused(status, body), Refused(status, body)]
    with pytest.raises(StoreUnavailable, match=message):
        await store.get("a")
    with pytest.raises(StoreUnavailable, match=message):
        await store.write(tx, SetValue("a", 1))


async def test_a_query_without_an_index_says_what_to_add(
    store: RealtimeDatabase, rtdb: WireServer
) -> None:
    rtdb.indexes = {"name"}
    assert await store.get("users", TreeQuery("name")) == {}
    with pytest.raises(StoreUnavailable, match=r'\.indexOn.*"\.indexOn": "age", for path "/users"'):
        await store.get("users", TreeQuery("age"))


async def test_a_server_that_is_not_there_does_not_answer(
    outbound: Outbound, tx: Transaction
) -> None:
    store = RealtimeDatabase(outbound, "http://127.0.0.1:1", timeout_seconds=PATIENT)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.check()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.transact(tx, "a", lambda _: 1)


async def test_an_answer_that_is_no_json_or_too_long_is_told(outbound: Outbound) -> None:
    with publishing() as published:
        published.answers["/a.json"] = Answer(b"<html>")
        published.answers["/b.json"] = Answer(b" " * (32 * 1024 * 1024 + 1))
        store = RealtimeDatabase(outbound, published.url, timeout_seconds=PATIENT)
        with pytest.raises(StoreUnavailable, match="did not send valid JSON"):
            await store.get("a")
        with pytest.raises(StoreUnavailable, match=r"more than 33,554,432 bytes.*shallow"):
            await store.get("b")


async def test_a_transaction_begins_anew_when_others_were_faster(
    store: RealtimeDatabase, rtdb: WireServer, tx: Transaction
) -> None:
    rtdb.before_puts = [10, 20]
    seen: list[Any] = []

    def add(value: Any) -> Any:
        seen.append(value)
        return (value or 0) + 1

    assert await store.transact(tx, "n", add) == 21
    assert seen == [None, 10, 20]
    assert [one.method for one in rtdb.requests] == ["GET", "PUT", "PUT", "PUT"]
    assert await store.get("n") == 21


async def test_a_transaction_that_others_always_outrun_gives_up(
    store: RealtimeDatabase, rtdb: WireServer, tx: Transaction
) -> None:
    rtdb.before_puts = list(range(100))
    with pytest.raises(StoreContended, match="Others change the same value"):
        await store.transact(tx, "n", lambda _: "mine")
    assert await store.get("n") == ATTEMPTS - 1
