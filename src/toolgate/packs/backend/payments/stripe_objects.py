"""What Stripe's objects say, in our words."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate.packs.backend.payments.money import major
from toolgate.packs.backend.payments.processor import Payment, Refund, Subscription
from toolgate.packs.backend.products import Products

Json = dict[str, Any]
STATUSES = {
    "active": "active",
    "trialing": "active",
    "past_due": "suspended",
    "unpaid": "suspended",
    "incomplete": "suspended",
    "paused": "suspended",
    "canceled": "cancelled",
    "incomplete_expired": "cancelled",
}
FREQUENCIES = {"day": "daily", "week": "weekly", "month": "monthly", "year": "annually"}
KEY = "toolgate_key"
"""In the metadata of a refund: the idempotency key that it was asked for with."""


def subscription_of(told: Json, products: Products, read_at: int) -> Subscription:
    """A subscription; its period is told by its items."""
    items: list[Json] = part(told, "items").get("data") or [{}]
    item = items[0]
    price = part(item, "price")
    start = item.get("current_period_start") or told.get("current_period_start")
    end = item.get("current_period_end") or told.get("current_period_end")
    canceled = told["status"] in {"canceled", "incomplete_expired"}
    pending = told.get("cancel_at") or (end if told.get("cancel_at_period_end") else None)
    return Subscription(
        id=told["id"],
        status=STATUSES.get(told["status"], "suspended"),
        started_at=told.get("start_date") or told["created"],
        period_start=start or told["created"],
        period_end=end or told["created"],
        trialing=told["status"] == "trialing",
        trial_end=told.get("trial_end"),
        cancel_at=None if canceled else pending,
        ended_at=(told.get("ended_at") or told.get("canceled_at")) if canceled else None,
        frequency=FREQUENCIES.get(part(price, "recurring").get("interval", "")),
        price=_amount(price),
        product=_product(told, price, products),
        customer=id_of(told.get("customer")),
        uid=part(told, "metadata").get("uid"),
        read_at=read_at,
    )


def payment_of(charge: Json, refunds: list[Json]) -> Payment:
    """A payment is a charge that went through."""
    return Payment(
        id=charge["id"],
        amount=charge["amount"],
        refunded=charge["amount_refunded"],
        currency=charge["currency"],
        paid_at=charge["created"],
        refunds=tuple(refund_of(one) for one in refunds if one.get("status") != "failed"),
    )


def refund_of(told: Json) -> Refund:
    """A refund, with the key of ours that it was asked for with."""
    key = part(told, "metadata").get(KEY)
    return Refund(id=told["id"], amount=told["amount"], currency=told["currency"], key=key)


def part(told: Json, name: str) -> Json:
    """An object in an object; an empty one where Stripe has none."""
    return told.get(name) or {}


def id_of(one: Any) -> str | None:
    """An id, of an object that may be given in full."""
    if isinstance(one, Mapping):
        return str(cast("Json", one)["id"])
    return one or None


def invoice_subscription(invoice: Json) -> str | None:
    """The subscription that an invoice is for."""
    details = part(part(invoice, "parent"), "subscription_details")
    return id_of(details.get("subscription") or invoice.get("subscription"))


def _amount(price: Json) -> float | None:
    if price.get("unit_amount") is None:
        return None
    return major(price["unit_amount"], price["currency"])


def _product(told: Json, price: Json, products: Products) -> str | None:
    """The product here: by the ids of its prices, by its own id, or as the metadata says."""
    for product in products.by_id.values():
        if price.get("id") in product.processor_ids.values():
            return product.id
    named = (id_of(price.get("product")), part(told, "metadata").get("productId"))
    return next((one for one in named if products.find(one)), None)
