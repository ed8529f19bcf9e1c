"""Usage: counted calls, limits of products, and counters that begin anew."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolgate.gate.errors import RateLimited
from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.usage import Usage, counter_of
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

ANNA = of_role(Role.USER, "key:1", "anna")
APRIL = datetime(2026, 4, 10, 12, tzinfo=UTC)
"""Of 30 days: basic has 100 requests a month, 4 a day, 34 until the tenth."""


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    metered = {"get_user": "requests"}
    settings: dict[str, Any] = {"packs__enabled": ["backend"], "backend__metered": metered}
    async with opened_kit(tmp_path, database__url=database_url, **settings) as opened:
        yield opened


def usage_at(kit: Kit, now: datetime) -> Usage:
    usage: Usage = kit.app.worlds["backend"].world.usage
    return replace(usage, clock=lambda: now)


async def record(kit: Kit) -> dict[str, Any]:
    return await kit.app.documents.of("backend").get("users", "anna") or {}


async def keep(kit: Kit, fields: dict[str, Any]) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Create("users", "anna", fields))


async def test_a_metered_tool_counts_and_then_answers_429(kit: Kit) -> None:
    outcomes = [await kit.call("get_user", as_=ANNA) for _ in range(5)]
    assert [one.status for one in outcomes] == [200, 200, 200, 200, 429]
    assert "You have used all requests of today" in outcomes[4].body["error"]
    assert (await record(kit))["usage"]["requests"]["total"] == 4, "what is refused is not counted"
    for _ in range(6):
        assert (await kit.call("get_subscription", as_=ANNA)).status == 200
        admin = of_role(Role.ADMIN, "key:2", "anna")
        assert (await kit.call("get_user", as_=admin)).status == 200


async def test_calls_at_once_are_counted_each(kit: Kit) -> None:
    premium = {"product": {"id": "premium", "name": "Premium"}}
    await keep(kit, {"subscription": premium, "team": "blue"})
    calls = (kit.call("get_user", as_=ANNA) for _ in range(60))
    statuses = [one.status for one in await asyncio.gather(*calls)]
    stored = (await record(kit))["usage"]["requests"]
    assert stored["total"] == statuses.count(200) > 20
    assert statuses.count(200) + statuses.count(429) == 60
    assert (await record(kit))["team"] == "blue"


@pytest.mark.parametrize(
    ("monthly", "daily", "told", "seconds"),
    [
        (3, 3, None, 0),
        (4, 4, "of today: 100 a month of product Basic, 4 a day", 43200),
        (33, 0, None, 0),
        (34, 0, "of today", 43200),
        (99, 0, "of today", 43200),
        (100, 0, "You have used all 100 requests a month of product Basic", 20.5 * 86400),
    ],
)
async def test_monthly_daily_and_proportional_caps(
    kit: Kit, monthly: int, daily: int, told: str | None, seconds: float
) -> None:
    last = {"id": None, "timestampUNIX": APRIL.timestamp() - 60}
    used = {"monthly": monthly, "daily": daily, "total": 500, "last": last}
    await keep(kit, {"usage": {"requests": used}})
    usage = usage_at(kit, APRIL)
    if told is None:
        after = await usage.count("anna", "requests")
        assert (after.monthly, after.daily, after.total) == (monthly + 1, daily + 1, 501)
        return
    with pytest.raises(RateLimited, match=told) as refused:
        await usage.count("anna", "requests")
    assert refused.value.retry_after == seconds


async def test_a_metric_without_a_limit_is_only_counted(kit: Kit) -> None:
    for _ in range(10):
        await usage_at(kit, APRIL).count("anna", "exports", "job-1")
    stored = (await record(kit))["usage"]["exports"]
    assert (stored["monthly"], stored["last"]["id"]) == (10, "job-1")


async def test_another_day_and_another_month_begin_anew(kit: Kit) -> None:
    for _ in range(4):
        await usage_at(kit, APRIL).count("anna", "requests")
    tomorrow, may = APRIL + timedelta(days=1), APRIL + timedelta(days=25)
    stored = await record(kit)
    assert counter_of(stored, "requests", tomorrow).daily == 0
    assert counter_of(stored, "requests", tomorrow).monthly == 4
    after = await usage_at(kit, may).count("anna", "requests")
    assert (after.monthly, after.daily, after.total) == (1, 1, 5)


@pytest.mark.parametrize("broken", [None, [], "x", {"requests": 5}, {"requests": {"monthly": "x"}}])
async def test_counters_of_another_shape_count_from_zero(kit: Kit, broken: Any) -> None:
    await keep(kit, {"usage": broken})
    assert (await usage_at(kit, APRIL).count("anna", "requests")).total == 1


async def test_reset_usage_sets_what_is_over_to_zero_and_leaves_today(kit: Kit) -> None:
    now = datetime.now(UTC)
    last = {"id": None, "timestampUNIX": now.timestamp() - 40 * 86400}
    old = {"monthly": 9, "daily": 3, "total": 12, "last": last}
    await keep(kit, {"usage": {"exports": old, "odd": 5}, "team": "blue"})
    await kit.call("get_user", as_=ANNA)
    ran = await kit.call("run_cron", id="reset-usage")
    assert ran.status == 200, ran.text
    stored = await record(kit)
    assert stored["usage"]["exports"] == old | {"monthly": 0, "daily": 0}
    assert stored["usage"]["requests"]["daily"] == 1
    assert (stored["usage"]["odd"], stored["team"]) == (5, "blue")
