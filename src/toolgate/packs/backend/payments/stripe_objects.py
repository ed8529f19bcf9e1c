"""What Stripe's objects say, in our words.

What is absent or null is so; what is of another type than Stripe documents raises `Unreadable`.
"""

import re
from typing import Any, TypeVar, cast

from toolgate.packs.backend.payments.money import major
from toolgate.packs.backend.payments.processor import Payment, ProcessorBusy, Refund, Subscription
from toolgate.packs.backend.products import Products
from toolgate.packs.backend.subscriptions import LAST

Json = dict[str, Any]
T = TypeVar("T")
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
ID = re.compile(r"[A-Za-z0-9_]{1,255}")
"""Ids become parts of addresses, where `..` would be another one."""
NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
"""Kinds of events, and the ids of products and prices, which their owners may choose."""
CURRENCY = re.compile(r"[a-z]{3}", re.ASCII)
MOST = 10**15
"""An amount above it is none."""


class Unreadable(ProcessorBusy):
    """An object lacks what every object of its kind has, or has it in another type."""

    def __init__(self, name: str) -> None:
        super().__init__("Stripe's answer cannot be read.")
        self.name = name


def subscription_of(told: Json, products: Products, read_at: int) -> Subscription:
    """A subscription; its period is told by its items."""
    items = listed(part(told, "items"))
    item: Json = items[0] if items else {}
    price = part(item, "price")
    status = _needed(text(told, "status"), "status")
    created = _needed(second(told, "created"), "created")
    end = second(item, "current_period_end") or second(told, "current_period_end")
    over = STATUSES.get(status) == "cancelled"
    pending = second(told, "cancel_at")
    if pending is None and told.get("cancel_at_period_end") is True:
        pending = end or created
    return Subscription(
        id=_needed(id_of(told), "id"),
        status=STATUSES.get(status, "suspended"),
        started_at=second(told, "start_date") or created,
        period_start=second(item, "current_period_start")
        or second(told, "current_period_start")
        or created,
        period_end=end or created,
        trialing=status == "trialing",
        trial_end=second(told, "trial_end"),
        cancel_at=None if over else pending,
        ended_at=(second(told, "ended_at") or second(told, "canceled_at")) if over else None,
        frequency=FREQUENCIES.get(text(part(price, "recurring"), "interval") or ""),
        price=_price(price),
        product=_product(told, price, products),
        customer=id_of(told.get("customer")),
        uid=text(part(told, "metadata"), "uid"),
        read_at=read_at,
    )


def payment_of(charge: Json, refunds: list[Json]) -> Payment:
    """A payment is a charge that went through."""
    return Payment(
        id=_needed(id_of(charge), "id"),
        amount=_needed(minor_units(charge, "amount"), "amount"),
        refunded=_needed(minor_units(charge, "amount_refunded"), "amount_refunded"),
        currency=_currency(charge),
        paid_at=_needed(second(charge, "created"), "created"),
        refunds=tuple(refund_of(one) for one in refunds if one.get("status") != "failed"),
    )


def refund_of(told: Json) -> Refund:
    """A refund, with the key of ours that it was asked for with."""
    return Refund(
        id=_needed(id_of(told), "id"),
        amount=_needed(minor_units(told, "amount"), "amount"),
        currency=_currency(told),
        key=text(part(told, "metadata"), KEY),
    )


def invoice_subscription(invoice: Json) -> str | None:
    """The subscription that an invoice is for."""
    details = part(part(invoice, "parent"), "subscription_details")
    return id_of(details.get("subscription")) or id_of(invoice.get("subscription"))


def part(told: Json, name: str) -> Json:
    """An object in an object; an empty one where there is none."""
    found: Json | None = _typed(told, name, dict)
    return found or {}


def listed(told: Json) -> list[Json]:
    """The objects of a list."""
    found: list[Any] | None = _typed(told, "data", list)
    every = found or []
    if not all(isinstance(one, dict) for one in every):
        raise Unreadable("data")
    return every


def id_of(one: Any) -> str | None:
    """An id, of an object that may be given in full; None where nothing is given."""
    return _matching(one, ID)


def name_of(one: Any) -> str | None:
    """The same of what is compared only, and never asked for."""
    return _matching(one, NAME)


def is_id(text: str) -> bool:
    """Whether it may be an id, so that it can be asked for."""
    return ID.fullmatch(text) is not None


def _matching(one: Any, form: re.Pattern[str]) -> str | None:
    if one is None or one == "":
        return None
    found: Any = cast("Json", one).get("id") if isinstance(one, dict) else one
    if not isinstance(found, str) or not form.fullmatch(found):
        raise Unreadable("id")
    return found


def text(told: Json, name: str) -> str | None:
    """A text that says something."""
    return _typed(told, name, str) or None


def second(told: Json, name: str) -> int | None:
    """A point in time, which is a day that there is; 0 is none."""
    return _whole(told, name, LAST) or None


def minor_units(told: Json, name: str) -> int | None:
    """An amount in minor units."""
    return _whole(told, name, MOST)


def _whole(told: Json, name: str, most: int) -> int | None:
    found = _typed(told, name, int)
    if found is not None and (isinstance(found, bool) or not 0 <= found <= most):
        raise Unreadable(name)
    return found


def _typed(told: Json, name: str, kind: type[Any]) -> Any:
    found: Any = told.get(name)
    if found is not None and not isinstance(found, kind):
        raise Unreadable(name)
    return found


def _needed(found: T | None, name: str) -> T:
    if found is None:
        raise Unreadable(name)
    return found


def _currency(told: Json) -> str:
    found = (text(told, "currency") or "").lower()
    return _needed(found if CURRENCY.fullmatch(found) else None, "currency")


def _price(price: Json) -> float | None:
    found = minor_units(price, "unit_amount")
    return None if found is None else major(found, _currency(price))


def _product(told: Json, price: Json, products: Products) -> str | None:
    """The product here: by the ids of its prices, by its own id, or as the metadata says."""
    for product in products.by_id.values():
        if name_of(price) in product.processor_ids.values():
            return product.id
    named = (name_of(price.get("product")), text(part(told, "metadata"), "productId"))
    return next((one for one in named if products.find(one)), None)
