"""What must be so before something is cancelled or refunded: in order, in these words."""

from typing import Any

import pytest
from tests.packs.backend.payments.records import keep, moment, order, stored, subscription

from toolgate.gate.principal import Role, of_role
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

PENDING = {"cancellation": {"pending": True}}
BASIC = {"product": {"id": "basic", "name": "Basic"}}
YOUNG = "Your subscription is still being set up. Please try again after 24-48 hours."
NO_DETAILS = (
    "Subscription payment details not found: the user's record has no subscription.payment."
)
NO_RESOURCE, NO_PROCESSOR = f"{NO_DETAILS}resourceId", f"{NO_DETAILS}processor"
NOT_CANCELLED = "Subscription must be cancelled or pending cancellation before requesting a refund"


async def refused(kit: Kit, tool: str, **arguments: Any) -> tuple[int, str]:
    before = await stored(kit, "anna")
    outcome = await kit.call(tool, uid="anna", **arguments)
    assert await stored(kit, "anna") == before, "nothing changed"
    assert await order(kit) == {}
    assert outcome.text == outcome.body["error"], "over MCP a plain sentence"
    return outcome.status, outcome.body["error"]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (BASIC, "No active paid subscription found"),
        ({"status": "cancelled"}, "No active paid subscription found"),
        ({"payment": {"startDate": moment(-0.9)}} | PENDING, YOUNG),
        (
            {"payment": {"resourceId": None}} | PENDING,
            "Subscription is already pending cancellation",
        ),
        ({"payment": {"resourceId": None}}, NO_RESOURCE),
        ({"payment": {"processor": None}}, NO_PROCESSOR),
        ({"payment": {"processor": "paypal"}}, "Unknown processor: paypal"),
        (
            {"payment": {"processor": "stripe"}},
            "Unknown processor: stripe. Set payments.url to stripe:",
        ),
    ],
)
async def test_a_subscription_that_cannot_be_cancelled(
    kit: Kit, record: dict[str, Any], told: str
) -> None:
    await keep(kit, "anna", subscription(**record))
    assert await refused(kit, "cancel_subscription", confirmed=True) == (400, told)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (BASIC | PENDING, "No paid subscription found"),
        ({}, NOT_CANCELLED),
        ({"status": "suspended"}, NOT_CANCELLED),
        ({"payment": {"resourceId": None}} | PENDING, NO_RESOURCE),
        ({"payment": {"processor": "paypal"}} | PENDING, "Unknown processor: paypal"),
        (
            {"payment": {"startDate": moment(-181)}} | PENDING,
            "Payments older than 6 months are not eligible for refunds",
        ),
        (
            {"status": "cancelled", "expires": moment(-1)},
            "Nothing is left to refund: the time that was paid for is over",
        ),
    ],
)
async def test_a_payment_that_does_not_go_back(kit: Kit, record: dict[str, Any], told: str) -> None:
    await keep(kit, "anna", subscription(**record))
    answer = await refused(kit, "refund_payment", confirmed=True, reason="no use")
    assert answer == (400, told)


@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment"])
async def test_it_must_be_confirmed(kit: Kit, tool: str) -> None:
    await keep(kit, "anna", subscription(**BASIC))
    what = {"cancel_subscription": "Cancellation", "refund_payment": "Refund"}[tool]
    given = {"reason": "no use"}
    assert await refused(kit, tool, confirmed=False, **given) == (400, f"{what} must be confirmed")
    for said in ("true", 1, None):
        status, told = await refused(kit, tool, confirmed=said, **given)
        assert (status, told) == (400, "confirmed must be true or false")
    status, told = await refused(kit, tool, **given)
    assert status == 400
    assert "confirmed" in told


async def test_a_refund_needs_a_reason(kit: Kit) -> None:
    await keep(kit, "anna", subscription(**PENDING))
    status, told = await refused(kit, "refund_payment", confirmed=True)
    assert status == 400
    assert "reason" in told


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("cancel_subscription", {"confirmed": True}),
        ("refund_payment", {"confirmed": True, "reason": "no use"}),
        ("get_payment_portal", {}),
    ],
)
class TestWhose:
    async def test_the_admin_key_says_whose(
        self, kit: Kit, tool: str, arguments: dict[str, Any]
    ) -> None:
        outcome = await kit.send(tool, arguments)
        told = "These credentials belong to no user. Say whose subscription it is with uid."
        assert (outcome.status, outcome.body["error"]) == (400, told)

    async def test_nobody_has_no_subscription(
        self, kit: Kit, tool: str, arguments: dict[str, Any]
    ) -> None:
        outcome = await kit.send(tool, {**arguments, "uid": "nobody"})
        assert (outcome.status, outcome.body["error"]) == (404, "User not found")

    async def test_an_admin_who_is_a_user_acts_on_their_own(
        self, kit: Kit, tool: str, arguments: dict[str, Any]
    ) -> None:
        await keep(kit, "anna", subscription(days=-2, cancellation={"pending": tool[0] == "r"}))
        anna = of_role(Role.ADMIN, "key:1", "anna")
        outcome = await kit.send(tool, arguments, anna)
        assert outcome.status == 200, outcome.body

    async def test_a_user_is_not_told_of_it(
        self, kit: Kit, tool: str, arguments: dict[str, Any]
    ) -> None:
        user = of_role(Role.USER, "key:1", "_test-premium-active")
        outcome = await kit.send(tool, arguments, user)
        assert outcome.status == 404
        assert outcome.body["error"].startswith(f"Unknown tool: {tool}")


async def test_a_record_full_of_odd_things_is_refused_in_words(kit: Kit) -> None:
    for odd in (
        "x",
        {"payment": 5},
        {"product": "premium", "payment": None},
        {"status": [], "cancellation": "x", "payment": {"startDate": "x"}},
    ):
        await keep(kit, "anna", odd)  # pyright: ignore[reportArgumentType]
        for tool in ("cancel_subscription", "refund_payment"):
            outcome = await kit.call(tool, uid="anna", confirmed=True, reason="x")
            assert outcome.status == 400, outcome.body
