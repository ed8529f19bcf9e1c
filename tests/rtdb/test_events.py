"""The stream of changes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import anyio
import pytest
from tests.identity.publisher import Answer, Publisher, publishing
from tests.patience import PATIENT
from tests.rtdb.wire_server import Refused, WireServer, running_rtdb

from toolgate.adapters.rtdb import RealtimeDatabase
from toolgate.adapters.rtdb.events import EventKind, TreeEvent
from toolgate.db.transactions import Transaction
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import StoreUnavailable
from toolgate.ports.tree import Remove, SetValue, UpdateChildren

pytestmark = pytest.mark.anyio

Events = AsyncIterator[TreeEvent]


async def following(events: Events) -> TreeEvent:
    with anyio.fail_after(PATIENT):
        return await anext(events)


async def test_a_stream_begins_with_the_value_and_tells_each_change(
    store: RealtimeDatabase, tx: Transaction
) -> None:
    await store.write(tx, SetValue("b", {"k1": {"n": 1}, "k2": [1, 2]}))
    async with aclosing(store.events("b")) as events:
        assert await following(events) == TreeEvent(
            EventKind.PUT, "", {"k1": {"n": 1}, "k2": [1, 2]}
        )
        await store.write(tx, SetValue("b/k1/n", 2))
        assert await following(events) == TreeEvent(EventKind.PUT, "k1/n", 2)
        await store.write(tx, UpdateChildren("b/k1", {"x": [5], "y/z": None}))
        assert await following(events) == TreeEvent(EventKind.PATCH, "k1", {"x": [5], "y/z": None})
        await store.write(tx, SetValue("elsewhere", 1), Remove("b/k2"))
        assert await following(events) == TreeEvent(EventKind.PUT, "", {"k1": {"n": 2, "x": [5]}})
        await store.write(tx, Remove("b"))
        assert await following(events) == TreeEvent(EventKind.PUT, "", None)


async def test_keep_alives_are_told_and_unknown_events_passed_over(
    store: RealtimeDatabase, rtdb: WireServer
) -> None:
    async with aclosing(store.events("")) as events:
        assert await following(events) == TreeEvent(EventKind.PUT)
        rtdb.say("something-new", {"x": 1})
        rtdb.say("keep-alive")
        assert await following(events) == TreeEvent(EventKind.KEEP_ALIVE)


@pytest.mark.parametrize("kind", [EventKind.CANCEL, EventKind.AUTH_REVOKED])
async def test_a_stream_ends_when_reading_is_no_longer_permitted(
    store: RealtimeDatabase, rtdb: WireServer, kind: EventKind
) -> None:
    async with aclosing(store.events("a")) as events:
        await following(events)
        rtdb.say(kind, "credential is no longer valid")
        told = await following(events)
        assert told.kind is kind
        assert "no longer valid" in told.value
        with pytest.raises(StopAsyncIteration):
            await following(events)


async def test_a_stream_that_the_server_ends_can_be_begun_anew(
    store: RealtimeDatabase, rtdb: WireServer, tx: Transaction
) -> None:
    async with aclosing(store.events("a")) as events:
        await following(events)
        rtdb.say(None)
        with pytest.raises(StopAsyncIteration):
            await following(events)
    await store.write(tx, SetValue("a", "meanwhile"))
    async with aclosing(store.events("a")) as events:
        assert await following(events) == TreeEvent(EventKind.PUT, "", "meanwhile")


async def test_a_stream_that_is_left_is_closed(store: RealtimeDatabase, rtdb: WireServer) -> None:
    async with aclosing(store.events("a")) as events:
        await following(events)
        assert len(rtdb.listeners) == 1
    with anyio.fail_after(PATIENT):
        while rtdb.listeners:
            await store.get("a")


async def test_a_refused_stream_says_why(store: RealtimeDatabase, rtdb: WireServer) -> None:
    rtdb.failures = [Refused(401, {"error": "Permission denied"})]
    with pytest.raises(StoreUnavailable, match=r"denies permission.*Permission denied"):
        await following(store.events("a"))


async def test_a_redirect_within_the_server_is_followed_with_the_token(
    rtdb: WireServer, outbound: Outbound
) -> None:
    async def token() -> str:
        return "secret"

    rtdb.token = "secret"
    rtdb.failures = [Refused(307, None, Location="/b.json?ns=x")]
    store = RealtimeDatabase(outbound, rtdb.url, token=token, timeout_seconds=PATIENT)
    async with aclosing(store.events("a")) as events:
        assert (await following(events)).kind is EventKind.PUT
    assert [(one.keys, one.asked) for one in rtdb.requests] == [(["a"], {}), (["b"], {"ns": "x"})]


async def test_a_redirect_elsewhere_is_refused_and_gets_no_token(
    rtdb: WireServer, outbound: Outbound
) -> None:
    async def token() -> str:
        return "secret"

    store = RealtimeDatabase(outbound, rtdb.url, token=token, timeout_seconds=PATIENT)
    with running_rtdb() as other:
        rtdb.redirect = f"{other.url}/a.json"
        with pytest.raises(StoreUnavailable, match=r"redirects a stream to 127\.0\.0\.1:"):
            await following(store.events("a"))
        assert other.requests == []


async def test_redirects_have_an_end(store: RealtimeDatabase, rtdb: WireServer) -> None:
    rtdb.redirect = "/a.json"
    with pytest.raises(StoreUnavailable, match="too often"):
        await following(store.events("a"))
    assert len(rtdb.requests) == 4


BODIES = {
    b'event: put\ndata: {"path":"/","data":1}\n\n': [1],
    b'event: put\r\ndata: {"path":"/","data":1}\r\n\r\nevent: put\rdata:{"data":2}\r\r': [1],
    b': a comment\nevent: put\ndata: {"path":"/",\ndata: "data":[3]}\nid: 7\n\n': [[3]],
    b'\n\nevent: put\ndata: {"path":"/","data":"half"}\n': [],
}


@pytest.fixture
def published() -> Iterator[Publisher]:
    with publishing() as publisher:
        yield publisher


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(len(body)))
async def test_events_may_come_in_any_pieces(
    published: Publisher, outbound: Outbound, body: bytes, size: int
) -> None:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    published.answers["/a.json"] = Answer(iter(pieces), headers={"Connection": "close"})
    store = RealtimeDatabase(outbound, published.url, timeout_seconds=PATIENT)
    with anyio.fail_after(PATIENT):
        values = [event.value async for event in store.events("a")]
    assert values[: len(BODIES[body])] == BODIES[body]


async def test_an_event_that_is_no_json_ends_the_stream(
    published: Publisher, outbound: Outbound
) -> None:
    published.answers["/a.json"] = Answer(b"event: put\ndata: [}\n\n")
    store = RealtimeDatabase(outbound, published.url, timeout_seconds=PATIENT)
    with pytest.raises(StoreUnavailable, match="did not send valid JSON"):
        await following(store.events("a"))
    published.answers["/a.json"] = Answer(b"event: patch\ndata: 5\n\n")
    with pytest.raises(StoreUnavailable, match="without data"):
        await following(store.events("a"))
