"""Events and answers of Stripe with something odd in them: told, and never half done."""

import copy
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from sqlalchemy import select
from tests.packs.backend.payments.records import keep, stored, subscription
from tests.packs.backend.payments.stripe_server import StripeServer
from tests.packs.backend.payments.test_stripe import settings, stripe, subscribed
from tests.packs.backend.payments.test_webhook import send
from tests.transports.conftest import Web, opened_web

from toolgate.packs.backend.sql.payment_tables import events

__all__ = ["stripe"]

pytestmark = pytest.mark.anyio

KINDS = {
    "customer.subscription.updated": "subscription",
    "customer.subscription.deleted": "subscription",
    "invoice.paid": "invoice",
    "invoice.payment_failed": "invoice",
    "charge.refunded": "charge",
    "payout.paid": "charge",
}
GONE = object()
ODD: list[Any] = [
    *(GONE, None, True, 0, -1, 1.5, 10**18, 10**30, "", "x", "x\u0000y", "a/../b", "é" * 300),
    *([], {}, [None], [{}], {"id": None}, {"id": {}}, {"data": [5]}, {"data": "x"}),
]
Place = tuple[Any, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where something can be something else, from the whole inwards."""
    yield at
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for name, one in inner:
        yield from places(one, (*at, name))


def changed(value: Any, at: Place, odd: Any) -> Any:
    """A copy with something odd in one place."""
    if not at:
        return {} if odd is GONE else odd
    made = copy.deepcopy(value)
    inner = made
    for name in at[:-1]:
        inner = inner[name]
    if odd is not GONE:
        inner[at[-1]] = odd
    else:
        del inner[at[-1]]
    return made


@pytest.fixture
async def web(tmp_path: Path, database_url: str, stripe: StripeServer) -> AsyncIterator[Web]:
    given = settings(stripe, database__url=database_url)
    async with opened_web(tmp_path, **given) as opened:
        yield opened


async def known(web: Web) -> set[str]:
    read = select(events.c.id)
    database = web.kit.app.gate.database
    return set(await database.read(lambda one: one.execute(read).scalars().all()))


async def answers_well(web: Web, event: Any, before: Any, now: Any) -> None:
    """200 and all of it, or 400 and nothing."""
    earlier = await known(web)
    body = json.dumps(event).encode()
    status, told = await send(web, body)
    assert status in {200, 400}, (status, told, event)
    after = await stored(web.kit, "anna")
    assert after["status"] in {before, now}, "nothing between the two"
    if status == 400:
        assert (await known(web), after["status"]) == (earlier, before)
        return
    assert event["id"] in await known(web)
    if told.get("understood") is False:
        assert after["status"] == before


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 10**6), st.sampled_from(range(len(ODD))))
@effort(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_an_event_with_something_odd(
    web: Web, stripe: StripeServer, kind: str, where: int, which: int
) -> None:
    stripe.objects.clear()
    made = await subscribed(web.kit, stripe)
    (about,) = stripe.objects[KINDS[kind]].values()
    stripe.end(made)
    whole = json.loads(stripe.event(kind, about))
    every = list(places(whole))
    event = changed(whole, every[where % len(every)], ODD[which])
    await answers_well(web, event, "active", "cancelled")


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_each_place_that_is_read(web: Web, stripe: StripeServer, kind: str) -> None:
    """The places that tell what an event is about, one by one."""
    made = await subscribed(web.kit, stripe)
    (about,) = stripe.objects[KINDS[kind]].values()
    stripe.end(made)
    record = subscription(resource=made["id"], payment={"processor": "stripe"})
    for place in (
        ("data",),
        ("data", "object"),
        ("data", "object", "id"),
        ("data", "object", "parent"),
        ("data", "object", "parent", "subscription_details"),
        ("data", "object", "parent", "subscription_details", "subscription"),
        ("data", "object", "payment_intent"),
        ("created",),
        ("id",),
        ("type",),
    ):
        for odd in ODD:
            whole = json.loads(stripe.event(kind, about))
            if place in set(places(whole)):
                await keep(web.kit, "anna", record)
                await answers_well(web, changed(whole, place, odd), "active", "cancelled")


async def test_one_that_is_not_understood_is_kept_and_told(
    web: Web, stripe: StripeServer, caplog: pytest.LogCaptureFixture
) -> None:
    made = await subscribed(web.kit, stripe)
    before = await stored(web.kit, "anna")
    event = {
        "id": "evt_odd",
        "type": "charge.refunded",
        "created": int(time.time()),
        "data": {"object": {"id": "ch_1", "payment_intent": {}}},
    }
    told = {"received": True, "new": True, "understood": False}
    assert await send(web, json.dumps(event).encode()) == (200, told)
    assert await send(web, json.dumps(event).encode()) == (200, told | {"new": False})
    assert await stored(web.kit, "anna") == before
    rules = [row["rule"] for row in await web.kit.audit_rows() if "webhook" in row["subject_id"]]
    assert rules == ["stripe-event-not-understood"] * 2
    assert "event evt_odd (charge.refunded) of Stripe was not understood" in caplog.text
    assert stripe.requests == [], made["id"]


@pytest.mark.parametrize("id", ["..", ".", "sub_1.", "../balance", "sub-1", "sub_1\n", "x" * 256])
@pytest.mark.parametrize("kind", ["customer.subscription.updated", "invoice.paid"])
async def test_what_is_no_id_becomes_no_part_of_an_address(
    web: Web, stripe: StripeServer, kind: str, id: str
) -> None:
    event = {"id": "evt_dots", "type": kind, "created": int(time.time())}
    about = {"id": id, "subscription": {"id": id}}
    whole = json.dumps(event | {"data": {"object": about}}).encode()
    assert await send(web, whole) == (200, {"received": True, "new": True, "understood": False})
    assert stripe.requests == []


async def test_an_id_in_a_record_that_is_none_is_not_asked_for(
    web: Web, stripe: StripeServer
) -> None:
    await subscribed(web.kit, stripe)
    record = await stored(web.kit, "anna")
    record["payment"]["resourceId"] = ".."
    await keep(web.kit, "anna", record)
    refused = await web.kit.call("get_payment_portal", uid="anna")
    assert refused.status == 400
    assert "No such subscription: the id in the record" in refused.body["error"]
    assert stripe.requests == []


@given(st.integers(0, 10**6), st.sampled_from(range(len(ODD))))
@effort(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_an_answer_with_something_odd(
    web: Web, stripe: StripeServer, where: int, which: int
) -> None:
    """Stripe is asked anew, and what it says then is not what it documents."""
    stripe.objects.clear()
    stripe.requests.clear()
    made = await subscribed(web.kit, stripe)
    stripe.end(made)
    body = stripe.event("customer.subscription.deleted", made)
    every = [one for one in places(made) if one]
    odd = changed(made, every[where % len(every)], ODD[which])
    stripe.objects["subscription"][made["id"]] = odd
    status, told = await send(web, body)
    assert status in {200, 503}, told
    after = await stored(web.kit, "anna")
    if status == 503:
        assert "Send the event again later." in told["error"]
        assert after["status"] == "active"
    assert (json.loads(body)["id"] in await known(web)) is (status == 200)


@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment", "get_payment_portal"])
@given(
    st.sampled_from(["subscription", "invoice", "invoice_payment", "payment_intent", "charge"]),
    st.integers(0, 10**6),
    st.sampled_from(range(len(ODD))),
)
@effort(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_tool_gets_an_answer_with_something_odd(
    web: Web, stripe: StripeServer, tool: str, kind: str, where: int, which: int
) -> None:
    stripe.objects.clear()
    pending = {"cancellation": {"pending": tool == "refund_payment"}}
    await subscribed(web.kit, stripe, record=pending)
    ((id, whole),) = stripe.objects[kind].items()
    every = [one for one in places(whole) if one]
    stripe.objects[kind][id] = changed(whole, every[where % len(every)], ODD[which])
    confirmed: Any = {} if tool == "get_payment_portal" else {"confirmed": True, "reason": "x"}
    outcome = await web.kit.call(tool, uid="anna", **confirmed)
    assert outcome.status in {200, 400, 503, 504}, (outcome.status, outcome.body)
    assert len(stripe.objects.get("refund", {})) <= 1
