"""Mail that is held: consent is asked again right before it is handed over."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.test_address_spellings import left_cart, world
from tests.packs.backend.test_scheduled_work import run, stored
from tests.smtp_server import Inbox, smtp_server

from toolgate.packs.backend.mail.sending import NO_CONSENT
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with smtp_server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, inbox: Inbox) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"packs__enabled": ["backend"], "mail__url": inbox.url}
    async with opened_kit(tmp_path, writes=True, database__url=database_url, **settings) as opened:
        yield opened


async def deliver(kit: Kit) -> dict[str, int]:
    """What is due an hour from now."""
    sending = world(kit).mail.sending
    later = sending.clock() + timedelta(hours=1)
    return await replace(sending, clock=lambda: later).deliver_due()


async def held(kit: Kit, **more: Any) -> str:
    soon = (world(kit).mail.sending.clock() + timedelta(minutes=5)).isoformat()
    given: dict[str, Any] = {"subject": "Hello", "copy": False, "sendAt": soon, **more}
    body = (await kit.call("send_email", **given)).body
    assert body["status"] == "queued", body
    return body["response"]["messageId"]


async def test_who_is_deleted_meanwhile_is_skipped_and_the_record_says_why(
    kit: Kit, inbox: Inbox
) -> None:
    one = await held(kit, to="victim@example.com", sender="marketing")
    two = await held(kit, to=["victim@example.com", "b@example.com"], sender="newsletter")
    other = await held(kit, to="victim@example.com", sender="orders")
    await kit.call("delete_contact", email="Victim@example.com")
    counts = await deliver(kit)
    assert (counts["skipped"], counts["sent"]) == (1, 2)
    assert inbox.everyone == ["b@example.com", "victim@example.com"]
    record = await stored(kit, f"emails/{one}")
    assert record["status"] == "skipped"
    (told,) = record["response"]["recipients"]
    assert (told["outcome"], told["words"]) == ("skipped", NO_CONSENT)
    outcomes = (await stored(kit, f"emails/{two}"))["response"]["recipients"]
    assert [told["outcome"] for told in outcomes] == ["skipped", "accepted"]
    assert (await stored(kit, f"emails/{other}"))["status"] == "sent"


async def test_a_reminder_that_is_queued_heeds_what_is_said_since(kit: Kit, inbox: Inbox) -> None:
    await left_cart(kit, "one", email="victim@example.com")
    assert (await run(kit, "abandoned-carts"))["reminded"] == 1
    await kit.call("delete_contact", email="victim@example.com")
    assert (await deliver(kit))["skipped"] == 1
    assert inbox.mails == []


async def test_any_group_that_was_left_is_left(kit: Kit, inbox: Inbox) -> None:
    await held(kit, to="a@example.com", sender="orders")
    async with kit.app.gate.database.transaction() as tx:
        await world(kit).consent.unsubscribe(tx, "a@example.com", "orders", "test")
    assert (await deliver(kit))["skipped"] == 1
    assert inbox.mails == []
