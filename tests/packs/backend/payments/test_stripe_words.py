"""What Stripe says of a request that it refuses is told, without any key in it."""

import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.packs.backend.payments.stripe_server import KEY, Asked, Json, Refused, StripeServer
from tests.packs.backend.payments.test_stripe import settings, stripe, subscribed

from toolgate.testing import Kit, opened_kit

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path, stripe: StripeServer) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, **settings(stripe)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"No such customer; key {KEY}!", "No such customer; key [redacted]!"),
        ("Wrong key rk_live_51abc***xyz given", "Wrong key [redacted] given"),
        ("Secret whsec_abc/+= is old", "Secret [redacted] is old"),
    ],
)
async def test_no_key_is_repeated_in_the_words_of_stripe(
    kit: Kit,
    stripe: StripeServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    words: str,
    told: str,
) -> None:
    await subscribed(kit, stripe)

    def refuse(_: Asked) -> tuple[int, Json]:
        return 400, Refused(400, words, "").body

    monkeypatch.setattr(stripe, "answer", refuse)
    caplog.set_level(logging.WARNING)
    refused = await kit.call("get_payment_portal", uid="anna")
    assert refused.body["error"] == f"Failed to create portal session: {told}"
    assert not re.search(r"sk_test|rk_live|whsec", caplog.text)
