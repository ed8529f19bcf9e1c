"""Events of Stripe: signed, each taken in once, and told by Stripe anew before they count.

An event only says what to look at. What is written into records is what Stripe answers when it is
asked then, so it does not matter in which order events come.
"""

import hashlib
import hmac
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from toolgate.gate.errors import Unavailable
from toolgate.gate.pages import PageAnswer, PageRequest, outside_caller
from toolgate.packs.backend.pack import ROUTES
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.payments.preconditions import refusal
from toolgate.packs.backend.payments.processor import (
    EventSource,
    ProcessorBusy,
    ProcessorRefused,
    Subscription,
)
from toolgate.packs.backend.payments.stripe_objects import id_of, invoice_subscription

logger = logging.getLogger(__name__)

PATH = f"{ROUTES}/payments/webhook"
TOLERANCE_SECONDS = 300
MAX_BODY = 512 * 1024
STRIPE = "stripe"
RULE = "stripe-signature"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Webhook:
    """Takes in events."""

    payments: Payments
    source: EventSource
    secret: str

    async def receive(self, request: PageRequest) -> PageAnswer:
        """Take in one event, or say why not; Stripe sends again what is not answered with 200."""
        check_signature(request.headers.get("stripe-signature", ""), request.body, self.secret)
        event = _event(request.body)
        try:
            subscription = await self._subject(event)
        except ProcessorBusy as problem:
            raise Unavailable(f"{problem} Send the event again later.") from problem
        uid = subscription and await self.payments.user_of(subscription)
        async with request.transaction(RULE, outside_caller("webhook:stripe")) as tx:
            new = await self.payments.intents.is_new_event(
                tx, event["id"], event["type"], event["created"]
            )
            if new and subscription and uid:
                told = {"name": event["type"], "id": event["id"]}
                await self.payments.follow(tx, uid, subscription, STRIPE, told)
        return PageAnswer(body=orjson.dumps({"received": True, "new": new}))

    async def _subject(self, event: Json) -> Subscription | None:
        """The subscription that an event is about, as it is now."""
        about: Json = event["data"]["object"]
        kind = str(event["type"])
        if kind.startswith("customer.subscription."):
            found = id_of(about)
        elif kind in {"invoice.paid", "invoice.payment_succeeded", "invoice.payment_failed"}:
            found = invoice_subscription(about)
        elif kind == "charge.refunded":
            found = await self.source.subscription_of_charge(about)
        else:
            return None
        try:
            return await self.source.find(found) if found else None
        except ProcessorRefused:  # Stripe does not know it: an event of another account
            logger.warning("event %s is about something that Stripe does not know", event["id"])
            return None


def check_signature(header: str, body: bytes, secret: str, now: float | None = None) -> None:
    """Raise unless the body was signed with the secret, and not too long ago."""
    pairs = [one.partition("=") for one in header.split(",")]
    stamps = [value for name, _, value in pairs if name.strip() == "t"]
    given = [value for name, _, value in pairs if name.strip() == "v1"]
    if len(stamps) != 1 or not stamps[0].isascii() or not stamps[0].isdecimal() or not given:
        raise refusal("stripe-signature", "The header Stripe-Signature is missing or unreadable.")
    signed = f"{stamps[0]}.".encode() + body
    wanted = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # Every one is compared, so that the time tells nothing.
    if not any([hmac.compare_digest(one.encode(), wanted) for one in given]):
        raise refusal("stripe-signature", "The signature is not the one of this event.")
    if abs((time.time() if now is None else now) - int(stamps[0])) > TOLERANCE_SECONDS:
        raise refusal("stripe-signature", "The signature is too old. Check the server's clock.")


def _event(body: bytes) -> Json:
    try:
        event: Any = orjson.loads(body)
        about = event["data"]["object"]
        typed: Sequence[tuple[Any, type]] = (
            (event["id"], str),
            (event["type"], str),
            (event["created"], int),
            (about, dict),
        )
        if all(isinstance(value, kind) for value, kind in typed):
            return cast("Json", event)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise refusal("body", "The body is not an event of Stripe.")
