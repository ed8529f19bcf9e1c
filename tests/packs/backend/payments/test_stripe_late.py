"""What shows only late: an expired key, a part that went back, an answer that was overtaken."""

from pathlib import Path

import pytest
from tests.packs.backend.payments.records import stored
from tests.packs.backend.payments.stripe_server import StripeServer
from tests.packs.backend.payments.test_stripe import (
    PENDING,
    WHY,
    kit,
    payments,
    settings,
    stripe,
    subscribed,
)

from toolgate.testing import Kit, opened_kit

__all__ = ["kit", "stripe"]

pytestmark = pytest.mark.anyio


async def test_a_lost_refund_is_found_after_its_key_has_expired(
    kit: Kit, stripe: StripeServer
) -> None:
    await subscribed(kit, stripe, amount=3000, paid_days_ago=10, record=PENDING)
    stripe.failures["POST /v1/refunds"] = ["lost"] * 3
    assert (await kit.call("refund_payment", uid="anna", **WHY)).status == 504
    stripe.forget_keys()
    answer = await kit.call("refund_payment", uid="anna", **WHY)
    assert answer.body["refund"] == {"amount": 20, "currency": "usd", "full": False}
    assert len(stripe.objects["refund"]) == 1


async def test_a_part_goes_back_once(kit: Kit, stripe: StripeServer) -> None:
    await subscribed(kit, stripe, amount=3000, paid_days_ago=10, record=PENDING)
    assert (await kit.call("refund_payment", uid="anna", **WHY)).status == 200
    again = await kit.call("refund_payment", uid="anna", **WHY)
    told = "This payment was refunded already (20.00 USD)"
    assert (again.status, again.body["error"]) == (400, told)
    assert len(stripe.objects["refund"]) == 1


async def test_of_two_answers_the_later_one_holds(kit: Kit, stripe: StripeServer) -> None:
    made = await subscribed(kit, stripe)
    account = await payments(kit).account("anna")
    before = await payments(kit).processors["stripe"].subscription(account)
    stripe.end(made)
    now = await payments(kit).processors["stripe"].subscription(account)
    for answer in (now, before):
        async with kit.app.gate.database.transaction() as tx:
            await payments(kit).follow(tx, "anna", answer, "stripe", {})
    assert (await stored(kit, "anna"))["status"] == "cancelled"


async def test_stripes_portal_for_who_may_not_cancel(tmp_path: Path, stripe: StripeServer) -> None:
    asked = {"policy__disabled": "cancel_subscription"}
    async with opened_kit(tmp_path / "a", **settings(stripe, **asked)) as kit:
        await subscribed(kit, stripe)
        refused = await kit.call("get_payment_portal", uid="anna")
        assert (refused.status, "stripe_viewing_portal" in refused.text) == (400, True)
        assert stripe.requests == []
    asked["payments__stripe_viewing_portal"] = "bpc_1"
    async with opened_kit(tmp_path / "b", **settings(stripe, **asked)) as kit:
        await subscribed(kit, stripe)
        assert (await kit.call("get_payment_portal", uid="anna")).status == 200
        assert stripe.asked("POST")[-1].form["configuration"] == "bpc_1"
