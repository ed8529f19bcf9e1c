"""A server that is killed when Stripe has done what it was asked, and has not yet said so."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.faults.server import Running, served
from tests.packs.backend.payments.records import keep, order, stored, subscription
from tests.packs.backend.payments.stripe_server import (
    KEY,
    SECRET,
    Asked,
    StripeServer,
    signature,
    stripe_server,
)

from toolgate.packs.backend.payments.reconciliation import settle_intents
from toolgate.packs.backend.sql.payment_tables import intents
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

WHY = {"confirmed": True, "reason": "no use", "uid": "anna"}
CANCEL, REFUND = "cancel_subscription", "refund_payment"


@pytest.fixture
def stripe() -> Iterator[StripeServer]:
    with stripe_server() as running:
        yield running


@dataclass(frozen=True)
class Place:
    """Where servers of a test keep what they have; they come and go."""

    data: Path
    database: str

    def settings(self, stripe: StripeServer) -> dict[str, Any]:
        return {**settings(stripe), "database__url": self.database}

    def kit(self, **more: Any) -> Any:
        given = {"packs__enabled": ["backend"], "database__url": self.database, **more}
        return opened_kit(self.data, **given)

    def served(self, stripe: StripeServer) -> Any:
        return served(self.data, **self.settings(stripe))


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Place:
    return Place(tmp_path, database_url)


def settings(stripe: StripeServer) -> dict[str, Any]:
    return {
        "packs__enabled": "backend",
        "payments__url": "stripe:",
        "payments__stripe_secret_key": KEY,
        "payments__stripe_webhook_secret": SECRET,
        "payments__stripe_url": stripe.url,
    }


async def killed(place: Place, stripe: StripeServer, tool: str) -> dict[str, Any]:
    """Call a tool; kill the server between Stripe's effect and its answer."""
    made = stripe.subscribe("anna")
    pending = {"pending": tool == REFUND}
    record = subscription(
        resource=made["id"], payment={"processor": "stripe"}, cancellation=pending
    )
    async with place.kit() as kit:
        await keep(kit, "anna", record)
    with place.served(stripe) as running:

        def kill(asked: Asked) -> None:
            if asked.method == "POST":
                running.kill()

        stripe.after = kill
        with suppress(OSError, HTTPException):
            running.call(tool, **WHY)
            pytest.fail("a killed server answered")
    stripe.after = None
    read = select(intents.c.kind, intents.c.state)
    async with place.kit() as kit:
        found = await kit.app.gate.database.read(lambda one: one.execute(read).all())
    assert [tuple(row) for row in found] == [(tool.partition("_")[0], "open")], (
        "the intent was stored before"
    )
    return made


async def after(place: Place) -> Any:
    """What the record says afterwards."""
    async with place.kit() as kit:
        return await stored(kit, "anna")


async def test_a_retry_completes_a_cancellation_with_the_same_key(
    place: Place, stripe: StripeServer
) -> None:
    made = await killed(place, stripe, CANCEL)
    assert made["cancel_at_period_end"] is True
    assert (await after(place))["cancellation"]["pending"] is False
    with place.served(stripe) as running:
        assert running.call(CANCEL, **WHY).body == {"success": True}
        assert running.call(CANCEL, **WHY).status == 400
    assert (await after(place))["cancellation"]["pending"] is True
    assert len(stripe.asked("POST")) == 1, "it saw that Stripe had done it"


async def test_a_retry_does_not_refund_twice(place: Place, stripe: StripeServer) -> None:
    made = await killed(place, stripe, REFUND)
    with place.served(stripe) as running:
        answer = running.call(REFUND, **WHY)
        assert answer.body["refund"] == {"amount": 4.99, "currency": "usd", "full": True}
    assert (len(stripe.objects["refund"]), made["status"]) == (1, "canceled")
    assert (await after(place))["status"] == "cancelled"


def deliver(running: Running, body: bytes) -> Any:
    path = f"http://127.0.0.1:{running.port}/backend-manager/payments/webhook"
    request = urllib.request.Request(path, body, {"Stripe-Signature": signature(body)})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


async def test_an_event_repairs_the_record(place: Place, stripe: StripeServer) -> None:
    made = await killed(place, stripe, CANCEL)
    with place.served(stripe) as running:
        event = stripe.event("customer.subscription.updated", made)
        assert deliver(running, event) == {"received": True, "new": True}
        assert deliver(running, event) == {"received": True, "new": False}
        told = running.call(CANCEL, **WHY)
        assert told.body == {"error": "Subscription is already pending cancellation"}
    assert (await after(place))["cancellation"]["pending"] is True
    assert len(stripe.asked("POST")) == 1


@pytest.mark.parametrize("tool", [CANCEL, REFUND])
async def test_the_nightly_comparison_repairs_the_record(
    place: Place, stripe: StripeServer, tool: str
) -> None:
    made = await killed(place, stripe, tool)
    async with place.kit(**settings(stripe)) as kit:
        payments = kit.app.worlds["backend"].world.payments
        settled = await settle_intents(payments, timedelta(0))
        assert settled == {"completed": 1, "not done": 0, "unknown": 0}
        record = await stored(kit, "anna")
        assert (await order(kit))["requests"]["cancellation" if tool == CANCEL else "refund"]
    assert record["cancellation"]["pending"] is (tool == CANCEL)
    assert record["status"] == ("active" if tool == CANCEL else "cancelled")
    assert made["status"] == ("active" if tool == CANCEL else "canceled")
    assert len(stripe.asked("POST")) == 1
