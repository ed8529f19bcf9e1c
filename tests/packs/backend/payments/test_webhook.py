"""Events of Stripe over HTTP: signed, once, in any order; and the record follows."""

import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.packs.backend.payments.records import keep, stored, subscription
from tests.packs.backend.payments.stripe_server import SECRET, StripeServer, signature
from tests.packs.backend.payments.test_stripe import settings, stripe, subscribed
from tests.transports.conftest import Web, opened_web

from toolgate.packs.backend.sql.payment_tables import events
from toolgate.testing import Kit

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio

PATH = "/backend-manager/payments/webhook"


@pytest.fixture
async def web(tmp_path: Path, database_url: str, stripe: StripeServer) -> AsyncIterator[Web]:
    given = settings(stripe, database__url=database_url)
    async with opened_web(tmp_path, **given) as opened:
        yield opened


async def send(web: Web, body: bytes, header: str | None = None) -> tuple[int, Any]:
    headers = {"Stripe-Signature": signature(body) if header is None else header}
    async with web.client(None) as stranger:
        answer = await stranger.post(PATH, content=body, headers=headers)
    return answer.status_code, answer.json()


def signed_at(body: bytes, stamp: str) -> str:
    """The header with this time, whatever it is, correctly signed."""
    signed = hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={signed}"


async def taken(kit: Kit) -> int:
    counted = select(func.count()).select_from(events)
    return await kit.app.gate.database.read(lambda one: one.scalar(counted)) or 0


NEW, KNOWN = (200, {"received": True, "new": True}), (200, {"received": True, "new": False})


async def test_the_record_follows_and_an_event_counts_once(web: Web, stripe: StripeServer) -> None:
    kit = web.kit
    made = await subscribed(kit, stripe)
    stripe.end(made)
    body = stripe.event("customer.subscription.deleted", made)
    assert await send(web, body) == NEW
    after = await stored(kit, "anna")
    assert after["status"] == "cancelled"
    assert after["payment"]["updatedBy"]["event"]["name"] == "customer.subscription.deleted"
    asked = len(stripe.requests)
    assert await send(web, body) == KNOWN
    assert await stored(kit, "anna") == after
    assert (await taken(kit), len(stripe.requests) - asked) == (1, 1)
    rows = [one for one in await kit.audit_rows() if one["rule"] == "stripe-signature"]
    assert [row["subject_id"] for row in rows] == ["webhook:stripe"] * 2


async def test_events_in_the_wrong_order_end_with_what_is_so_now(
    web: Web, stripe: StripeServer
) -> None:
    kit = web.kit
    made = await subscribed(kit, stripe)
    older = stripe.event("customer.subscription.updated", made, created=int(time.time()) - 100)
    stripe.end(made)
    newer = stripe.event("customer.subscription.deleted", made)
    for body in (newer, older):
        assert await send(web, body) == NEW
    assert (await stored(kit, "anna"))["status"] == "cancelled"


@pytest.mark.parametrize(
    ("kind", "status", "wanted"),
    [
        ("invoice.payment_failed", "past_due", "suspended"),
        ("invoice.payment_failed", "unpaid", "suspended"),
        ("invoice.paid", "active", "active"),
        ("customer.subscription.updated", "canceled", "cancelled"),
        ("charge.refunded", "canceled", "cancelled"),
    ],
)
async def test_every_kind_of_event(
    web: Web, stripe: StripeServer, kind: str, status: str, wanted: str
) -> None:
    made = await subscribed(web.kit, stripe, record={"status": "suspended"})
    made["status"] = status
    made["ended_at"] = made["canceled_at"] = int(time.time()) if status == "canceled" else None
    about = {"i": "invoice", "ch": "charge", "cu": "subscription"}
    which = next(name for start, name in about.items() if kind.startswith(start))
    (found,) = stripe.objects[which].values()
    assert await send(web, stripe.event(kind, found)) == NEW
    after = await stored(web.kit, "anna")
    assert after["status"] == wanted
    assert after["payment"]["frequency"] == "monthly"


async def test_a_new_subscription_reaches_the_user_it_was_made_for(
    web: Web, stripe: StripeServer
) -> None:
    await keep(web.kit, "anna", subscription(product={"id": "basic"}, resource=None))
    made = stripe.subscribe("anna", product="ultimate", amount=1999)
    assert await send(web, stripe.event("customer.subscription.created", made)) == NEW
    after = await stored(web.kit, "anna")
    assert after["product"] == {"id": "ultimate", "name": "Ultimate"}
    assert after["payment"]["resourceId"] == made["id"]
    assert after["payment"]["price"] == 19.99
    old = stripe.subscribe("anna")
    stripe.end(old)
    assert await send(web, stripe.event("customer.subscription.deleted", old)) == NEW
    assert await stored(web.kit, "anna") == after, "an older one that ends does not count"


async def test_the_user_is_found_by_the_record(web: Web, stripe: StripeServer) -> None:
    made = await subscribed(web.kit, stripe)
    made["metadata"] = {}
    stripe.end(made)
    assert await send(web, stripe.event("customer.subscription.deleted", made)) == NEW
    assert (await stored(web.kit, "anna"))["status"] == "cancelled"


async def test_what_is_not_signed_changes_nothing(web: Web, stripe: StripeServer) -> None:
    made = await subscribed(web.kit, stripe)
    before = await stored(web.kit, "anna")
    stripe.end(made)
    body = stripe.event("customer.subscription.deleted", made)
    late = int(time.time()) - 301
    for header in (
        "",
        "t=1",
        "v1=abc",
        f"t={late},v1=00",
        signature(body, "whsec_other"),
        signature(body, at=late),
        signature(body, at=int(time.time()) + 400),
        signature(body + b" "),
        "t=x,v1=y",
        signed_at(body, "9" * 5000),
    ):
        status, told = await send(web, body, header)
        assert status == 400, header[:80]
        assert "signature" in told["error"].lower()
    assert await stored(web.kit, "anna") == before
    assert (await taken(web.kit), stripe.requests) == (0, [])


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"id": 5}', b'{"id":"a","type":["b"]}', b"5"])
async def test_a_signed_body_that_is_no_event(web: Web, body: bytes) -> None:
    status, told = await send(web, body)
    assert (status, told["error"]) == (400, "The body is not an event of Stripe.")


async def test_other_events_are_taken_in_and_do_nothing(web: Web, stripe: StripeServer) -> None:
    assert await send(web, stripe.event("payout.paid", {"id": "po_1"})) == NEW
    made = stripe.subscribe("nobody")
    assert await send(web, stripe.event("customer.subscription.updated", made)) == NEW
    unknown = {"id": "sub_elsewhere"}
    assert await send(web, stripe.event("customer.subscription.updated", unknown)) == NEW


async def test_an_event_is_sent_again_while_stripe_fails(web: Web, stripe: StripeServer) -> None:
    made = await subscribed(web.kit, stripe)
    stripe.end(made)
    body = stripe.event("customer.subscription.deleted", made)
    stripe.failures[f"GET /v1/subscriptions/{made['id']}"] = [500, 500, 500]
    status, told = await send(web, body)
    assert (status, "Send the event again later." in told["error"]) == (503, True)
    assert await taken(web.kit) == 0
    assert await send(web, body) == NEW
    assert (await stored(web.kit, "anna"))["status"] == "cancelled"


async def test_no_events_without_stripe(tmp_path: Path) -> None:
    async with opened_web(tmp_path, packs__enabled=["backend"]) as web:
        status, told = await send(web, b"{}")
    assert status == 404
    assert "STRIPE_WEBHOOK_SECRET" in told["error"]
