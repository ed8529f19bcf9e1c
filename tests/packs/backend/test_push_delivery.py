"""One notification to many tokens: batches, filters, dead tokens, and what a crash leaves."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.fcm_server import UNAVAILABLE, UNREGISTERED, FcmServer, error, fcm_server

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.push.delivery import Audience, Deliveries
from toolgate.packs.backend.push.port import Notification
from toolgate.ports.documents import Create, Query
from toolgate.setting_types import BadSettings
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.declarations import RunReleased

pytestmark = pytest.mark.anyio

HELLO = Notification(title="Hello", body="World")
EVERYBODY = Audience()


class Noted:
    """Keeps checkpoints, as a run does; ends the process' part at the wish of a test."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.state = state or {}
        self.noted: list[dict[str, Any]] = []
        self.stop_at: int | None = None

    async def checkpoint(self, state: dict[str, Any], **_: Any) -> None:
        self.noted.append(state)
        self.state = state
        if self.stop_at is not None and len(self.noted) >= self.stop_at:
            raise RunReleased

    async def checkpoint_in(self, tx: Transaction, state: dict[str, Any], **_: Any) -> None:
        await self.checkpoint(state)


@pytest.fixture
def fcm() -> Iterator[FcmServer]:
    with fcm_server() as running:
        yield running


@asynccontextmanager
async def kit_with(folder: Path, url: str, fcm: FcmServer | None = None) -> AsyncIterator[Kit]:
    settings = {"database__url": url, "packs__enabled": ["backend"]}
    async with opened_kit(folder, **settings, **(fcm.settings() if fcm else {})) as kit:
        yield kit


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, fcm: FcmServer) -> AsyncIterator[Kit]:
    async with kit_with(tmp_path, database_url, fcm) as opened:
        yield opened


async def subscribe(kit: Kit, tokens: Sequence[str], **fields: Any) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(
            tx, *(Create("notifications", one, {"token": one, **fields}) for one in tokens)
        )


async def tokens_left(kit: Kit) -> list[str]:
    return [one.id for one in await kit.app.documents.of("backend").query(Query("notifications"))]


def deliveries(kit: Kit) -> Deliveries:
    return kit.app.worlds["backend"].world.deliveries


def told(tally: Any) -> tuple[int, int, int, int]:
    return tally.subscribers, tally.batches, tally.sent, tally.deleted


async def test_batches_dead_tokens_and_a_busy_one(kit: Kit, fcm: FcmServer) -> None:
    tokens = [f"t{number:04}" for number in range(1201)]
    await subscribe(kit, tokens)
    fcm.of_token = {"t0007": UNREGISTERED, "t1200": UNREGISTERED, "t0600": UNAVAILABLE}
    fcm.headers["retry-after"] = "60"
    tally = await deliveries(kit).deliver(HELLO, EVERYBODY, Noted())
    assert told(tally) == (1201, 3, 1198, 2)
    assert tally.failed == {"UNAVAILABLE": 1}
    assert (len(fcm.sent), set(fcm.sent.values())) == (1198, {1})
    assert await tokens_left(kit) == [one for one in tokens if one not in ("t0007", "t1200")]


async def test_filters(kit: Kit, fcm: FcmServer) -> None:
    await subscribe(kit, ["a", "b"], tags=["news", "sport"], owner="ann")
    await subscribe(kit, ["c"], tags=["sport"], owner="bob")
    await subscribe(kit, ["d"], owner="bob")
    found: dict[str, list[str]] = {}
    for name, audience in {
        "any of the tags": Audience(tags=["news", "weather"]),
        "owner": Audience(owner="bob"),
        "tags and owner": Audience(tags=["sport"], owner="bob"),
        "limit": Audience(limit=3),
        "token": Audience(token="elsewhere"),
        "nobody": Audience(owner="cy"),
    }.items():
        fcm.messages.clear()
        tally = await deliveries(kit).deliver(HELLO, audience, Noted())
        assert told(await deliveries(kit).count(audience))[:2] == told(tally)[:2]
        found[name] = sorted(fcm.sent)
        assert tally.sent == len(fcm.messages) == tally.subscribers
    assert found == {
        "any of the tags": ["a", "b"],
        "owner": ["c", "d"],
        "tags and owner": ["c"],
        "limit": ["a", "b", "c"],
        "token": ["elsewhere"],
        "nobody": [],
    }


async def test_a_token_sent_to_directly_is_deleted_only_where_it_was_kept(
    kit: Kit, fcm: FcmServer
) -> None:
    await subscribe(kit, ["old"])
    fcm.of_token = {"old": UNREGISTERED, "never": UNREGISTERED}
    for token, deleted in (("old", 1), ("never", 0)):
        tally = await deliveries(kit).deliver(HELLO, Audience(token=token), Noted())
        assert told(tally) == (1, 1, 0, deleted)
        assert tally.error is None
    assert await tokens_left(kit) == []


async def test_the_token_of_a_document_counts_more_than_its_id(kit: Kit, fcm: FcmServer) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(
            tx,
            Create("notifications", "hash", {"token": "real"}),
            Create("notifications", "bare", {"token": None}),
        )
    await deliveries(kit).deliver(HELLO, EVERYBODY, Noted())
    assert fcm.sent == {"real": 1, "bare": 1}


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4])
async def test_a_server_that_stops_between_batches_loses_and_repeats_nothing(
    kit: Kit, fcm: FcmServer, stop_at: int
) -> None:
    await subscribe(kit, [f"t{number:04}" for number in range(1001)])
    first = Noted()
    first.stop_at = stop_at
    with pytest.raises(RunReleased):
        await deliveries(kit).deliver(HELLO, EVERYBODY, first)
    tally = await deliveries(kit).deliver(HELLO, EVERYBODY, Noted(first.state))
    assert (len(fcm.sent), set(fcm.sent.values())) == (1001, {1})
    assert told(tally) == (1001, 3, 1001, 0)
    assert tally.failed == {}


async def test_a_batch_that_was_on_its_way_is_told_and_not_sent_again(
    kit: Kit, fcm: FcmServer
) -> None:
    await subscribe(kit, [f"t{number:04}" for number in range(700)])
    noted = Noted()
    await deliveries(kit).deliver(HELLO, EVERYBODY, noted)
    claimed = noted.noted[0]
    assert claimed["claimed"] == 500
    fcm.messages.clear()
    tally = await deliveries(kit).deliver(HELLO, EVERYBODY, Noted(claimed))
    assert sorted(fcm.sent) == [f"t{number:04}" for number in range(500, 700)]
    assert (told(tally), tally.failed) == ((700, 2, 200, 0), {"INTERRUPTED": 500})


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (error(401, "UNAUTHENTICATED"), "refuses the service account"),
        (error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), "QUOTA_EXCEEDED. Try again later."),
        (error(500, "INTERNAL"), "INTERNAL. Try again later."),
        ((200, b"\x00garbage"), "UNREADABLE_ANSWER. Some may have been sent all the same."),
        (
            error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.webpush"),
            "INVALID_ARGUMENT. Change the notification.",
        ),
    ],
)
async def test_a_service_that_takes_nothing_ends_it_after_one_batch(
    kit: Kit, fcm: FcmServer, answer: Any, says: str
) -> None:
    await subscribe(kit, [f"t{number:04}" for number in range(1001)])
    fcm.of_all = answer
    tally = await deliveries(kit).deliver(HELLO, EVERYBODY, Noted())
    assert tally.error is not None
    assert tally.error.endswith(says) or says in tally.error
    assert told(tally) == (500, 1, 0, 0)
    assert sum(tally.failed.values()) + len(tally.left) == 500
    assert len(tally.left) in (0, 500), "what may have been taken is not sent again"
    assert fcm.requests <= 500
    assert len(await tokens_left(kit)) == 1001, "no token is blamed"


async def test_by_default_notifications_are_kept_in_the_outbox(
    tmp_path: Path, database_url: str
) -> None:
    async with kit_with(tmp_path, database_url) as kit:
        await subscribe(kit, [f"t{number}" for number in range(501)])
        tally = await deliveries(kit).deliver(HELLO, EVERYBODY, Noted())
        assert told(tally) == (501, 2, 501, 0)
        newest, oldest = await kit.app.worlds["backend"].world.push_outbox.page(None, 10)
        assert (newest.recipients, oldest.recipients) == (1, 500)
        assert oldest.notification == {"title": "Hello", "body": "World"}
        assert {*newest.tokens, *oldest.tokens} == {f"t{number}" for number in range(501)}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY"),
        ({"google__credentials_file": "/nowhere.json"}, "/nowhere.json cannot be read"),
        ({"google__service_account": "secret"}, "not a JSON object"),
    ],
)
async def test_firebase_without_an_account_is_told_at_the_start(
    tmp_path: Path, given: dict[str, Any], says: str
) -> None:
    settings = {
        "push__url": "fcm://p1",
        "packs__enabled": ["backend"],
        "documents__url": "database:",
    }
    with pytest.raises(BadSettings, match=says) as refused:
        async with opened_kit(tmp_path, **settings, **given):
            pass
    assert "secret" not in str(refused.value)
