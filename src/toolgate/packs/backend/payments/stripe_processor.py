"""Stripe, through its own client library. Imported only where it is configured."""

import re
import time
from collections.abc import Awaitable
from typing import Any

import anyio
import stripe

from toolgate.outbound.client import Outbound
from toolgate.packs.backend.payments.processor import (
    Account,
    Payment,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
    Refund,
    Subscription,
)
from toolgate.packs.backend.payments.settings import PaymentsSettings
from toolgate.packs.backend.payments.stripe_http import StripeHttp
from toolgate.packs.backend.payments.stripe_objects import (
    KEY,
    Json,
    Unreadable,
    id_of,
    invoice_subscription,
    is_id,
    listed,
    minor_units,
    part,
    payment_of,
    refund_of,
    subscription_of,
    text,
)
from toolgate.packs.backend.products import Products

RETRIES = 2
MANY = 100
MAX_SENTENCE = 300
NOT_FOR_VIEWING = (
    "Stripe's page can cancel, and you may not. An admin can name a configuration of the portal "
    "without cancelling in the setting payments.stripe_viewing_portal."
)
NOT_AN_ID = "No such subscription: the id in the record is none of Stripe."
SECRET = re.compile(r"(?:sk|rk|whsec)_\S+")
"""A key, as far as it goes: Stripe repeats it with stars in it."""
REDACTED = "[redacted]"
ODD = "Stripe's answer cannot be read."


class StripeProcessor:
    """Asks Stripe. Money and time are as Stripe says, not as our records do."""

    name = "stripe"

    def __init__(
        self, settings: PaymentsSettings, key: str, outbound: Outbound, products: Products
    ) -> None:
        # Nothing of ours is told to Stripe beyond its requests.
        stripe.enable_telemetry = False
        client = stripe.StripeClient(
            key,
            base_addresses={"api": settings.stripe_url},
            http_client=StripeHttp(outbound, settings.seconds),
            max_network_retries=RETRIES,
        )
        self._v1 = client.v1
        self._key = key
        self._seconds = settings.seconds
        self._viewing_portal = settings.stripe_viewing_portal
        self._products = products

    async def subscription(self, account: Account) -> Subscription:
        """The user's subscription as Stripe has it now."""
        return await self.find(account.resource_id)

    async def find(self, id: str) -> Subscription:
        """A subscription by its id."""
        if not is_id(id):
            raise ProcessorRefused(NOT_AN_ID)
        read_at = time.time_ns() // 1000
        told = await self._read(self._v1.subscriptions.retrieve_async(id))
        return subscription_of(told, self._products, read_at)

    async def cancel(self, subscription: Subscription, *, at_once: bool, key: str) -> Subscription:
        """End it, at once or with its period."""
        read_at = time.time_ns() // 1000
        options: Any = {"idempotency_key": key}
        subscriptions, id = self._v1.subscriptions, subscription.id
        try:
            if at_once:
                told = await self._write(subscriptions.cancel_async(id, {}, options))
            else:
                later: Any = {"cancel_at_period_end": True}
                told = await self._write(subscriptions.update_async(id, later, options))
        except ProcessorRefused:
            found = await self.find(id)  # somebody else may have ended it meanwhile
            if found.ended:
                return found
            raise
        try:
            return subscription_of(told, self._products, read_at)
        except Unreadable as problem:
            raise ProcessorSilent(str(problem)) from problem

    async def payment(self, account: Account) -> Payment | None:
        """The charge of the newest invoice that was paid."""
        paid: Any = {"subscription": account.resource_id, "status": "paid", "limit": MANY}
        invoices = await self._read(self._v1.invoices.list_async(paid))
        for invoice in listed(invoices):
            id = id_of(invoice) if minor_units(invoice, "amount_paid") else None
            if id and (charge := await self._charge(id)):
                of_charge: Any = {"charge": id_of(charge), "limit": MANY}
                back = await self._read(self._v1.refunds.list_async(of_charge))
                return payment_of(charge, listed(back))
        return None

    async def _charge(self, invoice: str) -> Json | None:
        of_invoice: Any = {"invoice": invoice, "status": "paid", "limit": 1}
        for one in listed(await self._read(self._v1.invoice_payments.list_async(of_invoice))):
            payment = part(one, "payment")
            charge = id_of(payment.get("charge"))
            if intent := id_of(payment.get("payment_intent")):
                found = await self._read(self._v1.payment_intents.retrieve_async(intent))
                charge = id_of(found.get("latest_charge"))
            if charge:
                return await self._read(self._v1.charges.retrieve_async(charge))
        return None

    async def refund(self, payment: Payment, amount: int, key: str) -> Refund:
        """Give money back; Stripe itself refuses more than is left."""
        wanted: Any = {
            "charge": payment.id,
            "amount": amount,
            "reason": "requested_by_customer",
            "metadata": {KEY: key},
        }
        options: Any = {"idempotency_key": key}
        told = await self._write(self._v1.refunds.create_async(wanted, options))
        if told.get("status") in {"failed", "canceled"}:
            raise ProcessorRefused("Stripe could not pay the money back.")
        try:
            return refund_of(told)
        except Unreadable as problem:
            raise ProcessorSilent(str(problem)) from problem

    async def portal(self, account: Account, return_url: str, *, may_cancel: bool) -> str:
        """A new session of Stripe's billing portal."""
        if not may_cancel and not self._viewing_portal:
            raise ProcessorRefused(NOT_FOR_VIEWING)
        subscription = await self.find(account.resource_id)
        wanted: Any = {"customer": subscription.customer, "return_url": return_url}
        if not may_cancel:
            wanted["configuration"] = self._viewing_portal
        made = await self._write(self._v1.billing_portal.sessions.create_async(wanted))
        url = text(made, "url")
        if url is None or not url.startswith("https://"):
            raise Unreadable("url")
        return url

    async def subscription_of_payment(self, intent: str) -> str | None:
        """The id of the subscription that a payment intent was for."""
        of_intent: Any = {"payment": {"type": "payment_intent", "payment_intent": intent}}
        for one in listed(await self._read(self._v1.invoice_payments.list_async(of_intent))):
            if id := id_of(one.get("invoice")):
                invoice = await self._read(self._v1.invoices.retrieve_async(id))
                if found := invoice_subscription(invoice):
                    return found
        return None

    async def check(self) -> str:
        """For `toolgate doctor`: whether Stripe takes the key."""
        balance = await self._read(self._v1.balance.retrieve_async())
        return "live" if balance.get("livemode") else "test"

    async def _read(self, request: Awaitable[Any]) -> Json:
        """What fails while reading has done nothing."""
        try:
            return await self._write(request)
        except ProcessorSilent as problem:
            raise ProcessorBusy(str(problem)) from problem

    async def _write(self, request: Awaitable[Any]) -> Json:
        """The answer; errors are told without Stripe's own words for defects and keys."""
        try:
            with anyio.fail_after(self._seconds):
                answer = await request
        except TimeoutError as problem:
            raise ProcessorSilent(f"Stripe did not answer within {self._seconds:g} s.") from problem
        except stripe.StripeError as problem:
            raise _told(problem, self._key) from None  # its own words are in no log
        except (TypeError, ValueError, AttributeError, KeyError) as problem:
            raise ProcessorSilent(ODD) from problem  # the library could not make sense of it
        if not isinstance(answer, stripe.StripeObject):
            raise ProcessorSilent(ODD)
        return answer.to_dict()


def _told(problem: stripe.StripeError, key: str) -> Exception:
    """An error of the library in our words."""
    match problem:
        case stripe.InvalidRequestError() | stripe.CardError():
            return ProcessorRefused(_sentence(problem, key))
        case stripe.RateLimitError():
            return ProcessorBusy("Stripe takes no more requests now.")
        case stripe.AuthenticationError() | stripe.PermissionError():
            message = "Stripe refuses our key. An admin must check STRIPE_SECRET_KEY."
            return ProcessorBusy(message)
        case stripe.APIConnectionError():
            return ProcessorSilent("Stripe could not be reached, or did not answer.")
        case _:
            return ProcessorSilent("Stripe failed.")


def _sentence(problem: stripe.StripeError, key: str) -> str:
    """Stripe's own sentence, which is meant for people; kept short, and without keys."""
    text = problem.user_message or "Stripe refused it."
    if len(text) > MAX_SENTENCE or not text.isprintable():
        return "Stripe refused it."
    return SECRET.sub(REDACTED, text.replace(key, REDACTED))
