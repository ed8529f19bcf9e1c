"""Events and ended intents are kept for `payments.keep_days`, and then forgotten at night."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.packs.backend.payments.stripe_server import StripeServer
from tests.packs.backend.payments.test_routes import Run
from tests.packs.backend.payments.test_stripe import WHY as SAID
from tests.packs.backend.payments.test_stripe import settings, stripe, subscribed
from tests.packs.backend.payments.test_webhook import KNOWN, NEW, send
from tests.transports.conftest import Web, opened_web

from toolgate.packs.backend.payments import reconciliation, webhook
from toolgate.packs.backend.payments.workflow import reconcile
from toolgate.packs.backend.sql.payment_tables import events, intents
from toolgate.setting_types import BadSettings
from toolgate.settings import read_settings

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio

STRIPE_SENDS_AGAIN_DAYS = 3
WHY: dict[str, Any] = SAID
Move = Callable[[float], None]


@pytest.fixture
async def web(tmp_path: Path, database_url: str, stripe: StripeServer) -> AsyncIterator[Web]:
    given = settings(stripe, database__url=database_url, payments__keep_days=40)
    async with opened_web(tmp_path, **given) as opened:
        yield opened


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Move:
    """Moves the clock of the nightly work to so many days from now."""
    now = datetime.now(UTC)

    def to(days: float) -> None:
        monkeypatch.setattr(reconciliation, "utc_now", lambda: now + timedelta(days=days))

    return to


async def night(web: Web) -> dict[str, Any]:
    run: Any = Run(web.kit.app.worlds["backend"].world, {})
    return (await reconcile(run))["forgotten"]


async def rows(web: Web, column: Any) -> list[Any]:
    read = select(column)
    return list(await web.kit.app.gate.database.read(lambda one: one.execute(read).scalars().all()))


async def test_an_event_is_known_as_long_as_it_is_kept(
    web: Web, stripe: StripeServer, move: Move
) -> None:
    body = stripe.event("payout.paid", {"id": "po_1"})
    assert await send(web, body) == NEW
    for days in (1, STRIPE_SENDS_AGAIN_DAYS, 30, 39.9):
        move(days)
        assert await night(web) == {"events": 0, "intents": 0}
        assert await send(web, body) == KNOWN
    move(40.1)
    assert await night(web) == {"events": 1, "intents": 0}
    assert await rows(web, events.c.id) == []


async def test_what_ended_is_forgotten_and_what_is_open_is_not(
    web: Web, stripe: StripeServer, move: Move
) -> None:
    await subscribed(web.kit, stripe)
    assert (await web.kit.call("cancel_subscription", uid="anna", **WHY)).status == 200
    made = await subscribed(web.kit, stripe, "bob")
    path = f"POST /v1/subscriptions/{made['id']}"
    stripe.failures[path] = ["dead"] * 3
    assert (await web.kit.call("cancel_subscription", uid="bob", **WHY)).status == 504
    stripe.failures[f"GET /v1/subscriptions/{made['id']}"] = [500] * 30
    move(39.9)
    assert await night_that_cannot_ask(web) == (0, ["done", "open"])
    move(40.1)
    assert await night_that_cannot_ask(web) == (1, ["open"])


async def night_that_cannot_ask(web: Web) -> tuple[int, list[str]]:
    payments = web.kit.app.worlds["backend"].world.payments
    assert (await reconciliation.settle_intents(payments))["unknown"] == 1
    forgotten = await reconciliation.forget_old(payments)
    return forgotten.intents, sorted(await rows(web, intents.c.state))


async def test_those_that_cannot_be_settled_keep_no_other_waiting(
    web: Web, stripe: StripeServer, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "BATCH", 1)
    for uid in ("anna", "bob", "carl"):
        made = await subscribed(web.kit, stripe, uid)
        stripe.failures[f"POST /v1/subscriptions/{made['id']}"] = ["dead"] * 3
        assert (await web.kit.call("cancel_subscription", uid=uid, **WHY)).status == 504
        if uid != "carl":
            stripe.failures[f"GET /v1/subscriptions/{made['id']}"] = [500] * 30
    move(1)
    payments = web.kit.app.worlds["backend"].world.payments
    settled = await reconciliation.settle_intents(payments)
    assert settled == {"completed": 0, "not done": 1, "unknown": 2}


async def test_many_are_forgotten_a_few_at_a_time(
    web: Web, stripe: StripeServer, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "FORGOTTEN_AT_ONCE", 2)
    for number in range(5):
        assert await send(web, stripe.event("payout.paid", {"id": f"po_{number}"})) == NEW
    move(41)
    assert await night(web) == {"events": 5, "intents": 0}


def test_no_setting_forgets_before_an_event_could_come_again() -> None:
    for days in ("0", "29"):
        with pytest.raises(BadSettings, match="keep_days"):
            read_settings(flags={"payments.keep_days": days}, environment={})
    kept = read_settings(flags={}, environment={}).section("payments")
    days = getattr(kept, "keep_days", 0)
    assert days * 86_400 > max(webhook.TOLERANCE_SECONDS, STRIPE_SENDS_AGAIN_DAYS * 86_400)
