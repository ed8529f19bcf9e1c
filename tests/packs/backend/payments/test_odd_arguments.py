"""Odd arguments to the tools of payments: told, nothing asked of Stripe, nothing written."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from tests.packs.backend.payments.records import order, stored
from tests.packs.backend.payments.stripe_server import StripeServer
from tests.packs.backend.payments.test_stripe import settings as with_stripe
from tests.packs.backend.payments.test_stripe import stripe, subscribed

from toolgate.packs.backend.sql import payment_tables as tables
from toolgate.testing import Kit, opened_kit

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio

TOOLS = ["cancel_subscription", "refund_payment", "get_payment_portal", "get_subscription"]
NAMES = ["confirmed", "reason", "feedback", "uid", "returnUrl", "amount", ""]
texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["anna", "..", "a/b", "__x__", "\x00", "\ud800", "x" * 2001, "javascript:1"]),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), values, max_size=5)


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, stripe: StripeServer) -> AsyncIterator[Kit]:
    given = with_stripe(stripe, database__url=database_url)
    async with opened_kit(tmp_path, **given) as opened:
        await subscribed(opened, stripe, status="active")
        yield opened


async def intents(kit: Kit) -> int:
    counted = select(func.count()).select_from(tables.intents)
    return await kit.app.gate.database.read(lambda one: one.scalar(counted)) or 0


@pytest.mark.parametrize("tool", TOOLS)
@given(arguments)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_what_is_refused_changes_nothing(
    kit: Kit, stripe: StripeServer, tool: str, arguments: dict[str, Any]
) -> None:
    before, asked = await stored(kit, "anna"), len(stripe.requests)
    outcome = await kit.send(tool, arguments)
    assert outcome.status < 500, (outcome.status, outcome.body)
    if outcome.status == 200:
        assert tool in {"get_payment_portal", "get_subscription"} or arguments["confirmed"] is True
        return
    assert isinstance(outcome.body["error"], str)
    assert (await stored(kit, "anna"), await order(kit)) == (before, {})
    assert (await intents(kit), len(stripe.requests)) == (0, asked)


@pytest.mark.parametrize("confirmed", ["true", "True", 1, 1.0, [True], {"a": True}, None, ""])
@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment"])
async def test_only_true_confirms(
    kit: Kit, stripe: StripeServer, tool: str, confirmed: object
) -> None:
    given = {"confirmed": confirmed, "reason": "x", "uid": "anna"}
    outcome = await kit.send(tool, given)
    assert (outcome.status, outcome.body["error"]) == (400, "confirmed must be true or false")
    assert (await intents(kit), stripe.requests) == (0, [])
