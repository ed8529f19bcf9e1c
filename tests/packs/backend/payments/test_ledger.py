"""The embedded ledger: what it books, and the records that follow it."""

import anyio
import pytest
from sqlalchemy import func, select
from tests.packs.backend.payments.records import (
    DAY,
    keep,
    merge,
    moment,
    order,
    stored,
    subscription,
)

from toolgate.packs.backend.payments.payments import unix_now
from toolgate.packs.backend.sql import payment_tables as tables
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

PENDING = {"cancellation": {"pending": True}}
WHY = {"confirmed": True, "reason": "no use", "feedback": "nice though"}


async def count(kit: Kit, table: str) -> int:
    counted = select(func.count()).select_from(getattr(tables, table))
    found = await kit.app.gate.database.read(lambda connection: connection.scalar(counted))
    return int(found or 0)


async def taken_over(kit: Kit, uid: str) -> None:
    """The ledger has the subscription of a record in its books."""
    payments = kit.app.worlds["backend"].world.payments
    await payments.ledger.subscription(await payments.account(uid))


async def test_a_link_to_the_portal_books_nothing(kit: Kit) -> None:
    await keep(kit, "anna", subscription(resource="sub_new"))
    before = await count(kit, "subscriptions"), await count(kit, "charges")
    assert (await kit.call("get_payment_portal", uid="anna")).status == 200
    assert (await count(kit, "subscriptions"), await count(kit, "charges")) == before


async def test_a_link_to_what_is_somebody_elses_is_refused(kit: Kit) -> None:
    await keep(kit, "boss", subscription(resource="sub_taken"))
    await taken_over(kit, "boss")
    await keep(kit, "anna", subscription(resource="sub_taken"))
    refused = await kit.call("get_payment_portal", uid="anna")
    told = "Failed to create portal session: No such subscription: sub_taken"
    assert (refused.status, refused.body["error"]) == (400, told)


async def test_it_ends_with_the_period_and_the_order_says_why(kit: Kit) -> None:
    await keep(kit, "anna", subscription())
    before = await stored(kit, "anna")
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).body == {"success": True}
    after = await stored(kit, "anna")
    assert after["status"] == "active"
    assert after["expires"] == before["expires"]
    expires = before["expires"]["timestampUNIX"]
    assert after["cancellation"]["pending"] is True
    assert after["cancellation"]["date"]["timestampUNIX"] == expires
    assert after["payment"]["processor"] == "test"
    reason = (await order(kit))["requests"]["cancellation"]
    assert (reason["reason"], reason["feedback"]) == ("no use", "nice though")
    assert abs(reason["date"]["timestampUNIX"] - unix_now()) < 60
    again = await kit.call("cancel_subscription", uid="anna", **WHY)
    assert again.body == {"error": "Subscription is already pending cancellation"}


async def test_a_trial_ends_at_once(kit: Kit) -> None:
    trial = {"claimed": True, "expires": moment(5)}
    await keep(kit, "anna", subscription(trial=trial, expires=moment(5)))
    assert (await kit.call("cancel_subscription", uid="anna", confirmed=True)).status == 200
    after = await stored(kit, "anna")
    assert (after["status"], after["cancellation"]["pending"]) == ("cancelled", False)
    assert abs(after["expires"]["timestampUNIX"] - unix_now()) < 60


async def test_a_suspended_one_that_the_processor_refuses_is_over_for_us(kit: Kit) -> None:
    await keep(kit, "boss", subscription(resource="sub_taken"))
    await taken_over(kit, "boss")
    await keep(kit, "anna", subscription(resource="sub_taken", status="suspended"))
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).body == {"success": True}
    after = await stored(kit, "anna")
    assert (after["status"], after["product"]["id"]) == ("cancelled", "basic")
    assert (await order(kit))["requests"]["cancellation"]["reason"] == "no use"
    await keep(kit, "anna", subscription(resource="sub_taken"))
    refused = await kit.call("cancel_subscription", uid="anna", **WHY)
    told = "Failed to cancel subscription: No such subscription: sub_taken"
    assert (refused.status, refused.body["error"]) == (400, told)
    assert (await stored(kit, "boss"))["status"] == "active"


async def test_a_young_payment_goes_back_in_full_and_the_subscription_ends(kit: Kit) -> None:
    await keep(kit, "anna", subscription(days=-6.9, **PENDING))
    answer = await kit.call("refund_payment", uid="anna", **WHY)
    assert answer.body == {
        "success": True,
        "refund": {"amount": 4.99, "currency": "usd", "full": True},
    }
    after = await stored(kit, "anna")
    assert (after["status"], after["cancellation"]["pending"]) == ("cancelled", False)
    assert abs(after["expires"]["timestampUNIX"] - unix_now()) < 60
    kept = await order(kit)
    assert kept["requests"]["refund"]["reason"] == "no use"
    assert kept["refund"]["amount"] == 4.99
    again = await kit.call("refund_payment", uid="anna", **WHY)
    told = "This payment was refunded already (4.99 USD)"
    assert (again.status, again.body["error"]) == (400, told)
    assert await count(kit, "refunds") == 1


async def test_an_older_payment_goes_back_for_the_time_that_is_left(kit: Kit) -> None:
    await keep(kit, "anna", subscription(days=-10, expires=moment(30), **PENDING))
    body = (await kit.call("refund_payment", uid="anna", **WHY)).body
    assert body["refund"] == {"amount": 3.74, "currency": "usd", "full": False}


@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment"])
async def test_two_at_once_are_one(kit: Kit, tool: str) -> None:
    pending = {"pending": tool == "refund_payment"}
    await keep(kit, "anna", subscription(days=-3, cancellation=pending))
    statuses: list[int] = []

    async def call() -> None:
        statuses.append((await kit.call(tool, uid="anna", **WHY)).status)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(call)
    assert 200 in statuses
    assert set(statuses) <= {200, 400}
    assert await count(kit, "refunds") == (1 if pending["pending"] else 0)
    open_ones = select(func.count()).where(tables.intents.c.open_for.is_not(None))
    assert await kit.app.gate.database.read(lambda one: one.scalar(open_ones)) == 0


async def test_a_user_may_buy_again_after_a_refund(kit: Kit) -> None:
    await keep(kit, "anna", subscription(days=-3, **PENDING))
    assert (await kit.call("refund_payment", uid="anna", **WHY)).status == 200
    await merge(kit, "anna", subscription(resource="sub_2", days=-2))
    assert (await kit.call("cancel_subscription", uid="anna", **WHY)).status == 200
    assert (await kit.call("refund_payment", uid="anna", **WHY)).status == 200
    assert await count(kit, "refunds") == 2


async def test_demo_users_have_something_to_refund(kit: Kit) -> None:
    assert await count(kit, "charges") == 4
    for uid in ("_test-premium-cancelling", "_test-premium-expired"):
        outcome = await kit.call("refund_payment", uid=uid, **WHY)
        assert outcome.body["refund"] == {"amount": 4.99, "currency": "usd", "full": True}


@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment"])
async def test_a_dry_run_touches_nothing(kit: Kit, tool: str) -> None:
    await keep(kit, "anna", subscription(cancellation={"pending": tool[0] == "r"}))
    before = await stored(kit, "anna")
    outcome = await kit.call(tool, dry_run=True, uid="anna", **WHY)
    assert outcome.status == 403
    assert "A dry run is possible only where all that" in outcome.text
    assert await stored(kit, "anna") == before
    assert (await count(kit, "intents"), await order(kit)) == (0, {})


async def test_the_audit_has_the_call_and_not_the_reason(kit: Kit) -> None:
    await keep(kit, "anna", subscription())
    await kit.call("cancel_subscription", uid="anna", **WHY)
    rows = [row for row in await kit.audit_rows() if row["tool_name"] == "cancel_subscription"]
    assert len(rows) == 1
    assert "no use" not in str(rows)
    change = (await stored(kit, "anna"))["payment"]["updatedBy"]["event"]
    assert change == {"name": "cancel_subscription", "id": rows[0]["id"]}


async def test_what_is_due_is_renewed_or_ended(kit: Kit) -> None:
    await keep(kit, "anna", subscription(resource="sub_a"))
    await keep(kit, "bob", subscription(resource="sub_b", **PENDING))
    for uid in ("anna", "bob"):
        await taken_over(kit, uid)
    world = kit.app.worlds["backend"].world
    charged = await count(kit, "charges")
    assert await world.payments.ledger.book_due(unix_now()) == []
    assert sorted(await world.payments.ledger.book_due(unix_now() + 21 * DAY)) == ["anna", "bob"]
    assert await count(kit, "charges") == charged + 1
    assert await world.payments.ledger.book_due(unix_now() + 21 * DAY) == []
