"""Who is in which segment, told from a user's record alone."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from toolgate.packs.backend.demo import DEMO
from toolgate.packs.backend.marketing.segments import SEGMENTS, is_wanted, users_after
from toolgate.ports.documents import Set
from toolgate.ports.users import new_record, timestamp_record
from toolgate.testing.documents import MemoryDocuments

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OF = {uid: record for collection, uid, record in DEMO if collection == "users"}


def members(uid: str, prefix: str = "subscription_") -> set[str]:
    return {
        name.removeprefix(prefix)
        for name, test in SEGMENTS.items()
        if name.startswith(prefix) and test(OF[uid], NOW)
    }


@pytest.mark.parametrize(
    ("uid", "expected"),
    [
        ("_test-basic", {"free", "never_paid"}),
        ("_test-premium-active", {"paid", "ever_paid"}),
        ("_test-premium-expired", {"free", "cancelled", "churned_paid", "ever_paid"}),
        ("_test-premium-suspended", {"suspended", "ever_paid"}),
        ("_test-premium-cancelling", {"paid", "cancelling", "ever_paid"}),
    ],
)
def test_subscriptions_of_the_demo_users(uid: str, expected: set[str]) -> None:
    assert members(uid) == expected


def user(**subscription: Any) -> dict[str, Any]:
    record = new_record("u", now=NOW)
    return record | {"subscription": record["subscription"] | subscription}


def test_a_trial_runs_out() -> None:
    soon = timestamp_record(NOW + timedelta(days=1))
    trial = user(product={"id": "premium"}, expires=soon, trial={"claimed": True, "expires": soon})
    assert SEGMENTS["subscription_trialing"](trial, NOW)
    later = NOW + timedelta(days=2)
    assert not SEGMENTS["subscription_trialing"](trial, later)
    assert SEGMENTS["subscription_churned_trial"](trial, later)
    assert not SEGMENTS["subscription_churned_paid"](trial, later)


def at(days: int) -> dict[str, Any]:
    return timestamp_record(NOW + timedelta(days=days))


PREMIUM = {"product": {"id": "premium"}, "expires": at(20)}
BASIC = {"product": {"id": "basic"}, "status": "cancelled", "expires": at(-1)}
PAID = {"payment": {"price": 4.99, "startDate": at(-60), "orderId": "0000-0000-0001"}}
GRANTED = {"payment": {"price": 0, "startDate": at(-60), "orderId": "0000-0000-0001"}}


def trial(days: int) -> dict[str, Any]:
    return {"trial": {"claimed": True, "expires": at(days)}}


NO_TRIAL_END = {"trial": {"claimed": True}}


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        ({}, "free never_paid"),
        (PREMIUM | PAID, "paid ever_paid"),
        (PREMIUM | GRANTED, "paid never_paid"),
        (PREMIUM | PAID | trial(20), "trialing never_paid"),
        (PREMIUM | PAID | trial(-10), "paid ever_paid"),
        (PREMIUM | PAID | NO_TRIAL_END, "paid ever_paid"),
        (PREMIUM | PAID | {"cancellation": {"pending": True}}, "paid cancelling ever_paid"),
        (PREMIUM | PAID | {"status": "suspended"}, "suspended ever_paid"),
        (
            PREMIUM | PAID | {"status": "suspended", "expires": at(-1)},
            "suspended ever_paid churned_paid",
        ),
        (PREMIUM | PAID | {"status": "cancelled"}, "free cancelled ever_paid churned_paid"),
        (PREMIUM | PAID | {"expires": at(-1)}, "free ever_paid churned_paid"),
        (BASIC | PAID, "free cancelled ever_paid churned_paid"),
        (BASIC | PAID | {"status": "active"}, "free ever_paid churned_paid"),
        (BASIC | PAID | trial(-30), "free cancelled ever_paid churned_paid"),
        (BASIC | PAID | trial(-1), "free cancelled never_paid churned_trial"),
        (BASIC | PAID | trial(5), "free cancelled never_paid churned_trial"),
        (BASIC | PAID | NO_TRIAL_END, "free cancelled never_paid churned_trial"),
        (BASIC | GRANTED, "free cancelled never_paid"),
        (BASIC, "free cancelled never_paid"),
    ],
)
def test_each_state_of_a_subscription(subscription: dict[str, Any], expected: str) -> None:
    record = user(**subscription)
    found = {name for name, test in SEGMENTS.items() if test(record, NOW)}
    assert {one for one in found if one.startswith("subscription_")} == {
        f"subscription_{name}" for name in expected.split()
    }


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, {"active_7d", "active_30d", "active_90d"}),
        (8, {"active_30d", "active_90d"}),
        (31, {"active_90d"}),
        (91, {"inactive_90d"}),
    ],
)
def test_engagement_counts_from_the_last_change(days: int, expected: set[str]) -> None:
    record = new_record("u", now=NOW - timedelta(days=days))
    found = {name for name, test in SEGMENTS.items() if test(record, NOW)}
    assert {one for one in found if one.startswith("engagement_")} == {
        f"engagement_{name}" for name in expected
    }


@pytest.mark.parametrize(("days", "expected"), [(0, 5), (8, 4), (31, 3), (91, 2), (200, 1)])
def test_lifecycles_count_from_the_first_sign_in(days: int, expected: int) -> None:
    record = new_record("u", now=NOW - timedelta(days=days))
    found = [name for name in SEGMENTS if name.startswith("lifecycle_")]
    assert sum(SEGMENTS[name](record, NOW) for name in found) == expected


@pytest.mark.parametrize("record", [{}, {"subscription": None}, {"subscription": {"status": 3}},
    {"metadata": {"created": {"timestampUNIX": "soon"}}}, {"metadata": {"created": {
        "timestampUNIX": 10**30}}}])  # fmt: skip
def test_any_record_can_be_told_apart(record: dict[str, Any]) -> None:
    assert {bool(test(record, NOW)) for test in SEGMENTS.values()} <= {True, False}


def test_exclusion_beats_inclusion_and_all() -> None:
    record = OF["_test-premium-cancelling"]
    paid, cancelling = ["subscription_paid"], ["subscription_cancelling"]
    assert is_wanted(record, NOW, paid, [], all=False)
    assert not is_wanted(record, NOW, paid, cancelling, all=False)
    assert not is_wanted(record, NOW, [], cancelling, all=True)
    assert not is_wanted(record, NOW, [], [], all=False)


@pytest.mark.anyio
async def test_every_user_is_on_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.packs.backend.marketing.segments.PAGE", 3)
    documents, nothing = MemoryDocuments(), cast("Any", None)
    await documents.write(nothing, *(Set("users", f"u{number:02}", {}) for number in range(8)))
    seen: list[str] = []
    while page := await users_after(documents, seen[-1] if seen else None):
        assert len(page) <= 3
        seen += [one.id for one in page]
    assert seen == [f"u{number:02}" for number in range(8)]
