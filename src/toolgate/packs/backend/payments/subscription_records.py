"""The part of a user's record that follows the processor: `users/{uid}.subscription`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from toolgate.packs.backend.payments.preconditions import BASIC
from toolgate.packs.backend.payments.processor import Subscription
from toolgate.packs.backend.products import Product, Products
from toolgate.ports.users import NEVER, timestamp_record

Record = dict[str, Any]


def moment(seconds: int | None) -> Record:
    """A point in time, as records write it."""
    return timestamp_record(datetime.fromtimestamp(seconds, UTC)) if seconds else dict(NEVER)


def record_of(
    subscription: Subscription, processor: str, event: Record, products: Products
) -> Record:
    """What the record says of a subscription; what the processor does not tell is left out."""
    ends = subscription.ended_at if subscription.ended else subscription.cancel_at
    payment: Record = {
        "processor": processor,
        "resourceId": subscription.id,
        "startDate": moment(subscription.started_at),
        "updatedBy": {"event": event, "date": timestamp_record()},
    }
    record: Record = {
        "status": subscription.status,
        "expires": moment(subscription.ended_at or subscription.period_end),
        "cancellation": {
            "pending": subscription.cancel_at is not None and not subscription.ended,
            "date": moment(ends),
        },
        "payment": payment,
    }
    if subscription.frequency is not None:
        payment["frequency"] = subscription.frequency
    if subscription.price is not None:
        payment["price"] = subscription.price
    if subscription.trial_end is not None:
        record["trial"] = {"claimed": True, "expires": moment(subscription.trial_end)}
    if subscription.product is not None:
        product = products.find(subscription.product)
        name = product.name if product else subscription.product
        record["product"] = {"id": subscription.product, "name": name}
    return record


def ended_record(event: Record, basic: Product) -> Record:
    """For a subscription that its processor does not know any more: cancelled, and basic."""
    now = timestamp_record()
    return {
        "product": {"id": basic.id, "name": basic.name},
        "status": "cancelled",
        "expires": now,
        "cancellation": {"pending": False, "date": now},
        "payment": {"updatedBy": {"event": event, "date": now}},
    }


def is_about(subscription: Subscription, stored: Mapping[str, Any]) -> bool:
    """Whether a record follows this subscription: it does, has none, or its own one is over."""
    current = stored["payment"].get("resourceId")
    if not current or current == subscription.id:
        return True
    over = stored["status"] == "cancelled" or stored["product"].get("id") == BASIC
    return over and not subscription.ended


def differs(record: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether something in a record is not stored so; who changed it last does not matter."""
    for name, value in record.items():
        there = stored.get(name)
        if name in {"updatedBy", "timestamp"}:  # beside the latter are the seconds, which count
            continue
        if isinstance(value, dict) and isinstance(there, dict):
            if differs(value, there):  # pyright: ignore[reportUnknownArgumentType]
                return True
        elif value != there:
            return True
    return False
