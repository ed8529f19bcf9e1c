"""Payments over the real transports, the nightly workflow, and what doctor says."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.payments.records import DAY, keep, stored, subscription
from tests.packs.backend.payments.stripe_server import StripeServer
from tests.packs.backend.payments.test_stripe import settings, stripe, subscribed
from tests.transports.conftest import opened_web
from tests.transports.mcp_requests import ERAS, message_of, tool_call

from toolgate.packs.backend.payments import reconciliation
from toolgate.packs.backend.payments.opening import examine
from toolgate.packs.backend.payments.payments import unix_now
from toolgate.packs.backend.payments.workflow import reconcile
from toolgate.setting_types import BadSettings
from toolgate.settings import read_settings
from toolgate.testing import opened_kit

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio

ACTIVE = "_test-premium-active"


async def test_the_same_on_every_way_in(tmp_path: Path) -> None:
    async with opened_web(tmp_path, packs__enabled=["backend"]) as web, web.client() as admin:
        wrong = {"confirmed": False, "uid": ACTIVE}
        told = {"error": "Cancellation must be confirmed"}
        route = await admin.post("/backend-manager/payments/cancel", json=wrong)
        assert (route.status_code, route.json()) == (400, told)
        plain = await admin.post("/v1/tools/cancel_subscription", json=wrong)
        assert (plain.status_code, plain.json()) == (400, told)
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "cancel_subscription", "params": wrong}
        assert (await admin.post("/rpc", json=rpc)).json()["error"]["message"] == told["error"]
        for era in ERAS:
            sent = await tool_call(era, "cancel_subscription", wrong).send(admin)
            answer = message_of(sent)["result"]
            assert (answer["isError"], answer["content"][0]["text"]) == (True, told["error"])

        right = {"confirmed": True, "uid": ACTIVE, "reason": "x"}
        done = await admin.post("/backend-manager/payments/cancel", json=right)
        assert (done.status_code, done.json()) == (200, {"success": True})
        done = await admin.post("/backend-manager/payments/refund", json=right)
        refund = {"amount": 4.99, "currency": "usd", "full": True}
        assert (done.status_code, done.json()) == (200, {"success": True, "refund": refund})
        done = await admin.post("/backend-manager/payments/portal", json={"uid": ACTIVE})
        assert done.status_code == 200
        assert "/backend-manager/payments/portal/" in done.json()["url"]


@pytest.mark.parametrize("path", ["cancel", "refund", "portal"])
async def test_without_credentials_or_rights(tmp_path: Path, path: str) -> None:
    async with opened_web(tmp_path, packs__enabled=["backend"]) as web:
        body = {"confirmed": True, "reason": "x", "uid": ACTIVE}
        for holder, status in ((None, 401), ("user", 404)):
            async with web.client(holder) as client:
                answer = await client.post(f"/backend-manager/payments/{path}", json=body)
                assert answer.status_code == status
        assert (await stored(web.kit, ACTIVE))["cancellation"]["pending"] is False


class Run:
    """What a workflow is given: it keeps what it is told, and stops where it should."""

    def __init__(self, world: Any, state: dict[str, Any], stop_after: int = 99) -> None:
        self.world, self.state, self.left = world, state, stop_after
        self.kept = json.dumps(state)

    async def checkpoint(self, state: dict[str, Any], **_: Any) -> None:
        self.kept = json.dumps(state)
        self.left -= 1
        if self.left == 0:
            raise InterruptedError


async def test_the_nightly_work_goes_on_where_it_stopped(
    tmp_path: Path, stripe: StripeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "BATCH", 2)
    async with opened_kit(tmp_path, **settings(stripe)) as kit:
        for number in range(5):
            made = await subscribed(kit, stripe, f"u{number}")
            stripe.end(made)
        world = kit.app.worlds["backend"].world
        first: Any = Run(world, {}, stop_after=2)
        with pytest.raises(InterruptedError):
            await reconcile(first)
        asked = len(stripe.asked("GET", "/v1/subscriptions"))
        assert asked == 2
        second: Any = Run(world, json.loads(first.kept))
        result = await reconcile(second)
        assert (result["compared"], result["repaired"]) == (5, 5)
        assert len(stripe.asked("GET", "/v1/subscriptions")) == 5, "none is asked for twice"
        for number in range(5):
            assert (await stored(kit, f"u{number}"))["status"] == "cancelled"


async def test_a_cancelled_one_of_the_ledger_ends_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        await keep(kit, "anna", subscription())
        assert (await kit.call("cancel_subscription", uid="anna", confirmed=True)).status == 200
        later = unix_now() + 21 * DAY
        monkeypatch.setattr(reconciliation, "unix_now", lambda: later)
        run: Any = Run(kit.app.worlds["backend"].world, {})
        assert (await reconcile(run))["booked"] == 1
        after = await stored(kit, "anna")
        assert (after["status"], after["cancellation"]["pending"]) == ("cancelled", False)


async def test_doctor_says_who_takes_the_money(tmp_path: Path, stripe: StripeServer) -> None:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        outbound = kit.app.outbound

        def given(**more: str) -> Any:
            flags = {
                name.replace("__", "."): value for name, value in settings(stripe, **more).items()
            }
            return read_settings(flags=flags, environment={})

        assert "embedded ledger" in await examine(kit.app.settings, outbound)
        assert await examine(given(), outbound) == "Stripe answers, in test mode."
        with pytest.raises(BadSettings, match="STRIPE_WEBHOOK_SECRET is not set"):
            await examine(given(payments__stripe_webhook_secret=""), outbound)
        with pytest.raises(BadSettings, match="Stripe refuses our key") as told:
            await examine(given(payments__stripe_secret_key="sk_wrong"), outbound)
        assert "sk_wrong" not in str(told.value)
