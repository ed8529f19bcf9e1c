"""Stripe, through its own client library, against a server that speaks its API."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import stripe as library
from tests.packs.backend.payments.records import keep, order, stored, subscription
from tests.packs.backend.payments.stripe_server import KEY, SECRET, StripeServer, stripe_server

from toolgate.packs.backend.payments.payments import unix_now
from toolgate.packs.backend.payments.reconciliation import repair_some, settle_intents
from toolgate.packs.backend.payments.stripe_http import StripeHttp
from toolgate.setting_types import BadSettings
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

WHY = {"confirmed": True, "reason": "no use", "feedback": "nice though"}
PENDING = {"cancellation": {"pending": True}}


@pytest.fixture
def stripe(monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeServer]:
    monkeypatch.setattr(StripeHttp, "sleep_async", lambda *_: anyio.sleep(0.01))
    with stripe_server() as running:
        yield running


def settings(stripe: StripeServer, **more: Any) -> dict[str, Any]:
    return {
        "packs__enabled": ["backend"],
        "payments__url": "stripe:",
        "payments__stripe_secret_key": KEY,
        "payments__stripe_webhook_secret": SECRET,
        "payments__stripe_url": stripe.url,
        **more,
    }


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, stripe: StripeServer) -> AsyncIterator[Kit]:
    given = settings(stripe, database__url=database_url)
    async with opened_kit(tmp_path, **given) as opened:
        yield opened


async def subscribed(kit: Kit, stripe: StripeServer, uid: str = "anna", **how: Any) -> Any:
    """A user with a subscription at Stripe."""
    parts = how.pop("record", {})
    made = stripe.subscribe(uid, **how)
    payment = {"processor": "stripe"} | parts.pop("payment", {})
    await keep(kit, uid, subscription(resource=made["id"], payment=payment, **parts))
    return made


async def test_cancelling_is_one_request_with_a_key(kit: Kit, stripe: StripeServer) -> None:
    made = await subscribed(kit, stripe)
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).body == {"success": True}
    asked = stripe.asked("POST")
    assert [(one.path, one.form) for one in asked] == [
        (f"/v1/subscriptions/{made['id']}", {"cancel_at_period_end": "true"})
    ]
    rows = [row for row in await kit.audit_rows() if row["tool_name"] == "cancel_subscription"]
    assert asked[0].key == f"toolgate-{rows[0]['id']}"
    after = await stored(kit, "anna")
    assert after["cancellation"]["pending"] is True
    assert after["cancellation"]["date"]["timestampUNIX"] == made["cancel_at"]
    assert after["status"] == "active"
    assert after["expires"]["timestampUNIX"] == made["cancel_at"]
    assert (await order(kit))["requests"]["cancellation"]["reason"] == "no use"


async def test_a_trial_ends_at_once(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, trial=True)
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).status == 200
    assert [one.method for one in stripe.asked("DELETE")] == ["DELETE"]
    after = await stored(kit, "anna")
    assert (after["status"], after["cancellation"]["pending"]) == ("cancelled", False)
    assert after["trial"]["claimed"] is True


async def test_two_at_once_cancel_with_one_key(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe)
    statuses: list[int] = []

    async def call() -> None:
        statuses.append((await kit.call("cancel_subscription", uid="anna", **WHY)).status)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(call)
    assert 200 in statuses
    assert set(statuses) <= {200, 400}
    assert len({one.key for one in stripe.asked("POST")}) == 1


async def test_two_at_once_refund_once(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, record=PENDING)
    statuses: list[int] = []

    async def call() -> None:
        statuses.append((await kit.call("refund_payment", uid="anna", **WHY)).status)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(call)
    assert 200 in statuses
    assert set(statuses) <= {200, 400}
    assert len(stripe.objects["refund"]) == 1


async def test_a_suspended_one_that_stripe_refuses_is_over_for_us(
    kit: Kit, stripe: StripeServer
) -> None:
    await subscribed(kit, stripe, status="unpaid", record={"status": "suspended"})
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).body == {"success": True}
    after = await stored(kit, "anna")
    assert (after["status"], after["product"]["id"]) == ("cancelled", "basic")
    assert (await order(kit))["requests"]["cancellation"]["reason"] == "no use"


async def test_what_stripe_refuses_is_told(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, status="unpaid")
    before = await stored(kit, "anna")
    refused = await kit.call("cancel_subscription", uid="anna", **WHY)
    told = "This subscription cannot be updated without a payment"
    assert (refused.status, refused.body["error"]) == (
        400,
        f"Failed to cancel subscription: {told}",
    )
    assert await stored(kit, "anna") == before
    assert await settle_intents(payments(kit)) == {"completed": 0, "not done": 0, "unknown": 0}


def payments(kit: Kit) -> Any:
    return kit.app.worlds["backend"].world.payments


@pytest.mark.parametrize(
    ("amount", "currency", "days", "told"),
    [
        (499, "usd", 3, {"amount": 4.99, "currency": "usd", "full": True}),
        (3000, "usd", 10.0, {"amount": 20, "currency": "usd", "full": False}),
        (500, "jpy", 3, {"amount": 500, "currency": "jpy", "full": True}),
        (500, "jpy", 10.0, {"amount": 333, "currency": "jpy", "full": False}),
        (1500, "kwd", 3, {"amount": 1.5, "currency": "kwd", "full": True}),
        (1000, "kwd", 10.0, {"amount": 0.66, "currency": "kwd", "full": False}),
    ],
)
async def test_the_answer_is_the_refund_of_stripe(
    kit: Kit, stripe: StripeServer, amount: int, currency: str, days: float, told: Any
) -> None:
    made = await subscribed(
        kit, stripe, amount=amount, currency=currency, paid_days_ago=days, record=PENDING
    )
    body = (await kit.call("refund_payment", uid="anna", **WHY)).body
    assert body == {"success": True, "refund": told}
    (refund,) = stripe.objects["refund"].values()
    assert refund["currency"] == currency
    assert made["status"] == "canceled", "it ends at once"
    after = await stored(kit, "anna")
    assert (after["status"], after["cancellation"]["pending"]) == ("cancelled", False)
    assert after["expires"]["timestampUNIX"] == made["ended_at"]


async def test_never_more_than_stripe_has_left(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, amount=1000, record=PENDING)
    (charge,) = stripe.objects["charge"].values()
    charge["amount_refunded"] = 800
    body = (await kit.call("refund_payment", uid="anna", **WHY)).body
    assert body["refund"] == {"amount": 2, "currency": "usd", "full": False}
    again = await kit.call("refund_payment", uid="anna", **WHY)
    told = "This payment was refunded already (10.00 USD)"
    assert (again.status, again.body["error"]) == (400, told)
    assert len(stripe.objects["refund"]) == 1


async def test_an_old_payment_does_not_go_back(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, paid_days_ago=181, record=PENDING)
    refused = await kit.call("refund_payment", uid="anna", **WHY)
    told = "Payments older than 6 months are not eligible for refunds"
    assert (refused.status, refused.body["error"]) == (400, told)
    assert stripe.asked("POST") == []


async def test_a_trial_has_no_payment(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, trial=True, record=PENDING)
    refused = await kit.call("refund_payment", uid="anna", **WHY)
    assert refused.body["error"] == "No payment was found for this subscription"


async def test_every_portal_session_is_new(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe)
    urls = {(await kit.call("get_payment_portal", uid="anna")).body["url"] for _ in "ab"}
    assert len(urls) == 2
    assert all(one.startswith("https://billing.stripe.example/") for one in urls)
    sent = stripe.asked("POST", "billing_portal")
    assert {one.form["return_url"] for one in sent} == {kit.app.site_of("backend").base_url}


async def test_an_unknown_customer_is_told(kit: Kit, stripe: StripeServer) -> None:
    made = await subscribed(kit, stripe)
    made["customer"] = "cus_nobody"
    refused = await kit.call("get_payment_portal", uid="anna")
    told = "Failed to create portal session: No such customer: 'cus_nobody'"
    assert (refused.status, refused.body["error"]) == (400, told)
    made["id"] = "sub_other"
    stripe.objects["subscription"].clear()
    refused = await kit.call("get_payment_portal", uid="anna")
    assert "No such subscription" in refused.body["error"]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://evil.example/",
        "//evil.example/",
        "http://127.0.0.1:8765@evil.example/",
        "https://evil.example\\@127.0.0.1:8765/",
        "http://app.example.com/",
        "data:text/html,x",
        "https://app.example.com.evil.example/",
        "https://[::1",
    ],
)
async def test_a_return_url_of_somebody_else_is_refused(
    tmp_path: Path, stripe: StripeServer, url: str
) -> None:
    given = settings(stripe, payments__return_hosts=["app.example.com"])
    async with opened_kit(tmp_path, **given) as kit:
        await subscribed(kit, stripe)
        refused = await kit.call("get_payment_portal", uid="anna", returnUrl=url)
        assert refused.status == 400
        assert "returnUrl" in refused.body["error"]
        assert "a whole address that begins with one of: http" in refused.body["error"]
        assert stripe.asked("POST") == []
        for good in (
            "https://app.example.com/account?a=1",
            f"{kit.app.site_of('backend').base_url}/x",
        ):
            made = await kit.call("get_payment_portal", uid="anna", returnUrl=good)
            assert made.status == 200
            assert stripe.asked("POST")[-1].form["return_url"] == good


# When Stripe fails


@pytest.mark.parametrize(
    ("failures", "status", "told"),
    [
        ([402], 400, "It failed."),
        ([429], 503, "Nothing was done"),
        ([500, 500, 500], 504, "It is not known whether it was done"),
        (["dead", "dead", "dead"], 504, "It is not known whether it was done"),
        (["garbage"], 504, "It is not known whether it was done"),
        ([500], 200, ""),
        (["lost"], 200, ""),
    ],
    ids=str,
)
async def test_cancelling_while_stripe_fails(
    kit: Kit, stripe: StripeServer, failures: list[Any], status: int, told: str
) -> None:
    made = await subscribed(kit, stripe)
    stripe.failures[f"POST /v1/subscriptions/{made['id']}"] = list(failures)
    outcome = await kit.call("cancel_subscription", uid="anna", **WHY)
    assert outcome.status == status, outcome.body
    assert told in outcome.text
    assert KEY not in outcome.text
    again = await kit.call("cancel_subscription", uid="anna", **WHY)
    assert again.status == (400 if status == 200 else 200), again.body
    assert (await stored(kit, "anna"))["cancellation"]["pending"] is True
    keys = {one.key for one in stripe.asked("POST")}
    assert len(keys) == (2 if status in {400, 503} else 1), "unknown: the same key again"


@pytest.mark.parametrize("failure", [500, "dead", "garbage"])
async def test_looking_while_stripe_fails_does_nothing(
    kit: Kit, stripe: StripeServer, failure: Any
) -> None:
    made = await subscribed(kit, stripe, record=PENDING)
    stripe.failures[f"GET /v1/subscriptions/{made['id']}"] = [failure] * 3
    outcome = await kit.call("refund_payment", uid="anna", **WHY)
    assert outcome.status == 503
    assert "Nothing was done" in outcome.text
    assert stripe.asked("POST") == []


async def test_a_slow_stripe_is_not_waited_for(tmp_path: Path, stripe: StripeServer) -> None:
    async with opened_kit(tmp_path, **settings(stripe, payments__seconds=0.3)) as kit:
        made = await subscribed(kit, stripe)
        stripe.failures[f"POST /v1/subscriptions/{made['id']}"] = [1.0, 1.0, 1.0]
        outcome = await kit.call("cancel_subscription", uid="anna", **WHY)
        assert outcome.status == 504
        assert "Stripe did not answer within 0.3 s." in outcome.text
        assert (await stored(kit, "anna"))["cancellation"]["pending"] is False


async def test_a_wrong_key_is_told_without_it(tmp_path: Path, stripe: StripeServer) -> None:
    wrong = settings(stripe, payments__stripe_secret_key="sk_test_wrong")
    async with opened_kit(tmp_path, **wrong) as kit:
        await subscribed(kit, stripe)
        outcome = await kit.call("cancel_subscription", uid="anna", **WHY)
        assert outcome.status == 503
        assert "Stripe refuses our key" in outcome.text
        assert "sk_test_wrong" not in outcome.text


async def test_a_refund_whose_answer_was_lost_is_made_once(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, record=PENDING)
    stripe.failures["POST /v1/refunds"] = ["lost", "lost", "lost"]
    outcome = await kit.call("refund_payment", uid="anna", **WHY)
    assert outcome.status == 504
    assert "nothing is done twice" in outcome.text
    again = await kit.call("refund_payment", uid="anna", **WHY)
    assert again.body["refund"] == {"amount": 4.99, "currency": "usd", "full": True}
    assert len(stripe.objects["refund"]) == 1


async def test_money_back_and_not_known_to_have_ended(kit: Kit, stripe: StripeServer) -> None:
    made = await subscribed(kit, stripe, record=PENDING)
    stripe.failures[f"DELETE /v1/subscriptions/{made['id']}"] = [500, 500, 500]
    outcome = await kit.call("refund_payment", uid="anna", **WHY)
    assert outcome.status == 504
    assert "4.99 USD was refunded" in outcome.text
    assert (await kit.call("refund_payment", uid="anna", **WHY)).status == 200
    assert (made["status"], len(stripe.objects["refund"])) == ("canceled", 1)


async def test_a_dry_run_asks_stripe_nothing(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, record=PENDING)
    for tool in ("cancel_subscription", "refund_payment"):
        assert (await kit.call(tool, dry_run=True, uid="anna", **WHY)).status == 403
    assert stripe.requests == []


# What is looked into at night


async def test_what_was_never_told_is_settled(kit: Kit, stripe: StripeServer) -> None:
    made = await subscribed(kit, stripe)
    await subscribed(kit, stripe, "bob", record=PENDING)
    await subscribed(kit, stripe, "eve")
    stripe.failures[f"POST /v1/subscriptions/{made['id']}"] = ["lost"] * 3
    stripe.failures["POST /v1/refunds"] = ["lost"] * 3
    third = (await stored(kit, "eve"))["payment"]["resourceId"]
    stripe.failures[f"POST /v1/subscriptions/{third}"] = ["dead"] * 3
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).status == 504
    assert (await kit.call("refund_payment", uid="bob", **WHY)).status == 504
    assert (await kit.call("cancel_subscription", uid="eve", **WHY)).status == 504
    assert await settle_intents(payments(kit)) == {"completed": 0, "not done": 0, "unknown": 0}
    settled = await settle_intents(payments(kit), timedelta(0))
    assert settled == {"completed": 2, "not done": 1, "unknown": 0}
    assert (await stored(kit, "anna"))["cancellation"]["pending"] is True
    assert (await stored(kit, "bob"))["status"] == "cancelled"
    assert (await stored(kit, "eve"))["cancellation"]["pending"] is False
    assert (await order(kit))["requests"]["cancellation"]["reason"] == "no use"
    assert len(stripe.objects["refund"]) == 1
    assert await settle_intents(payments(kit), timedelta(0)) == dict.fromkeys(settled, 0)


async def test_records_that_differ_are_repaired(kit: Kit, stripe: StripeServer) -> None:
    for number in range(3):
        await subscribed(kit, stripe, f"u{number}")
    await repair_some(payments(kit), None)
    assert await repair_some(payments(kit), None) == (None, 3, 0)
    second = (await stored(kit, "u1"))["payment"]["resourceId"]
    stripe.end(stripe.objects["subscription"][second])
    assert await repair_some(payments(kit), None) == (None, 3, 1)
    after = await stored(kit, "u1")
    assert after["status"] == "cancelled"
    assert abs(after["expires"]["timestampUNIX"] - unix_now()) < 60


async def test_without_a_key_there_is_no_start(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="STRIPE_SECRET_KEY"):
        async with opened_kit(tmp_path, packs__enabled=["backend"], payments__url="stripe:"):
            pass


async def test_nothing_is_told_to_stripe_but_requests(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe)
    assert not library.enable_telemetry
