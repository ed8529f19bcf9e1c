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
