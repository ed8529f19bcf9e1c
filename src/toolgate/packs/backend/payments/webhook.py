"""Events of Stripe: signed, each taken in once, and told by Stripe anew before they count.

An event only says what to look at. What is written into records is what Stripe answers when it is
asked then, so it does not matter in which order events come.
"""

import hashlib
import hmac
import logging
import re
import time
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import orjson

from toolgate.db.transactions import Transaction
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
from toolgate.packs.backend.payments.stripe_objects import (
    Json,
    Unreadable,
    id_of,
    invoice_subscription,
    name_of,
    part,
    second,
)

logger = logging.getLogger(__name__)

PATH = f"{ROUTES}/payments/webhook"
TOLERANCE_SECONDS = 300
MAX_BODY = 512 * 1024
SECONDS = re.compile(r"[0-9]{1,15}")
STRIPE = "stripe"
RULE = "stripe-signature"
NOT_UNDERSTOOD = "stripe-event-not-understood"
WHO = "webhook:stripe"
OF_SUBSCRIPTIONS = "customer.subscription."
REFUNDED = "charge.refunded"
OF_PAYMENTS = {"invoice.paid", "invoice.payment_succeeded", "invoice.payment_failed", REFUNDED}


@dataclass(frozen=True, slots=True)
class Event:
    """What an event says of itself."""

    id: str
    kind: str
    created: int
    about: Json | None
    """The object that it is about; None where it cannot be read."""


class Subject(NamedTuple):
    """The id of a subscription, or of a payment for one."""

    id: str
    is_payment: bool = False


@dataclass(frozen=True, slots=True)
class Webhook:
    """Takes in events."""

    payments: Payments
    source: EventSource
    secret: str

    async def receive(self, request: PageRequest) -> PageAnswer:
        """Take in one event, or say why not; Stripe sends again what is not answered with 200.

        What is signed and cannot be understood would not be so the next time either: it is taken
        in, and told to the operator. The nightly comparison finds what it may have been about.
        """
        check_signature(request.headers.get("stripe-signature", ""), request.body, self.secret)
        event = event_of(request.body)
        try:
            subject = subject_of(event)
        except Unreadable as problem:
            return await self._keep(request, event, problem)
        try:
            subscription = await self._told_anew(event, subject)
        except ProcessorBusy as problem:
            raise Unavailable(f"{problem} Send the event again later.") from problem
        uid = subscription and await self.payments.user_of(subscription)
        async with request.transaction(RULE, outside_caller(WHO)) as tx:
            new = await self._is_new(tx, event)
            if new and subscription and uid:
                told = {"name": event.kind, "id": event.id}
                await self.payments.follow(tx, uid, subscription, STRIPE, told)
        return _answer(new=new)

    async def _keep(self, request: PageRequest, event: Event, problem: Unreadable) -> PageAnswer:
        """Take in an event that cannot be understood; the audit and the log say so."""
        logger.warning(
            "event %s (%s) of Stripe was not understood: field %s. Its subscription is compared "
            "every night",
            event.id,
            event.kind,
            problem.name,
        )
        async with request.transaction(NOT_UNDERSTOOD, outside_caller(WHO)) as tx:
            return _answer(new=await self._is_new(tx, event), understood=False)

    async def _is_new(self, tx: Transaction, event: Event) -> bool:
        return await self.payments.intents.is_new_event(tx, event.id, event.kind, event.created)

    async def _told_anew(self, event: Event, subject: Subject | None) -> Subscription | None:
        """The subscription that an event is about, as it is now."""
        if subject is None:
            return None
        try:
            id: str | None = subject.id
            if subject.is_payment:
                id = await self.source.subscription_of_payment(subject.id)
            return await self.source.find(id) if id else None
        except ProcessorRefused:  # Stripe does not know it: an event of another account
            logger.warning("event %s is about something that Stripe does not know", event.id)
            return None


def subject_of(event: Event) -> Subject | None:
    """What to ask Stripe about; None where the event is about no subscription."""
    if event.kind.startswith(OF_SUBSCRIPTIONS):
        if event.about is None or (id := id_of(event.about)) is None:
            raise Unreadable("data.object")
        return Subject(id)
    if event.kind not in OF_PAYMENTS:
        return None
    if event.about is None:
        raise Unreadable("data.object")
    if event.kind == REFUNDED:
        intent = id_of(event.about.get("payment_intent"))
        return Subject(intent, is_payment=True) if intent else None
    found = invoice_subscription(event.about)
    return Subject(found) if found else None


def _answer(**said: bool) -> PageAnswer:
    return PageAnswer(body=orjson.dumps({"received": True, **said}))


def check_signature(header: str, body: bytes, secret: str, now: float | None = None) -> None:
    """Raise unless the body was signed with the secret, and not too long ago."""
    pairs = [one.partition("=") for one in header.split(",")]
    stamps = [value for name, _, value in pairs if name.strip() == "t"]
    given = [value for name, _, value in pairs if name.strip() == "v1"]
    if len(stamps) != 1 or not SECONDS.fullmatch(stamps[0]) or not given:
        raise refusal("stripe-signature", "The header Stripe-Signature is missing or unreadable.")
    signed = f"{stamps[0]}.".encode() + body
    wanted = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # Every one is compared, so that the time tells nothing.
    if not any([hmac.compare_digest(one.encode(), wanted) for one in given]):
        raise refusal("stripe-signature", "The signature is not the one of this event.")
    if abs((time.time() if now is None else now) - int(stamps[0])) > TOLERANCE_SECONDS:
        raise refusal("stripe-signature", "The signature is too old. Check the server's clock.")


def event_of(body: bytes) -> Event:
    """The event in a body; raises unless it says which one it is, and of which kind."""
    try:
        told: Any = orjson.loads(body)
        event = cast("Json", told) if isinstance(told, dict) else {}
        id, kind = id_of(event.get("id")), name_of(event.get("type"))
    except (orjson.JSONDecodeError, Unreadable):
        id, kind, event = None, None, {}
    if id is None or kind is None:
        raise refusal("body", "The body is not an event of Stripe.")
    return Event(id, kind, *_content(event))


def _content(event: Json) -> tuple[int, Json | None]:
    """When it was made, and what it is about, as far as that can be read."""
    try:
        created, data = second(event, "created") or 0, part(event, "data")
    except Unreadable:
        return 0, None
    return created, cast("Json", data["object"]) if isinstance(data.get("object"), dict) else None
