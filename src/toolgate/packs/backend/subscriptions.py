"""What a user's record says of the subscription, whoever wrote it."""

from typing import Any, cast

from toolgate.ports.users import NEVER, NO_SUBSCRIPTION, Record

STATUSES = ("active", "suspended", "cancelled")
LAST = 253_402_300_799
"""The last second of the year 9999: no date is later."""


def subscription_of(record: Record | None) -> Record:
    """The subscription over its defaults; what has another shape than a subscription is none."""
    return _over(NO_SUBSCRIPTION, (record or {}).get("subscription"))


def public_subscription(record: Record | None) -> Record:
    """The same as people may see it: neither the order nor what the processor calls it."""
    full = subscription_of(record)
    payment = full["payment"]
    return {
        **{name: full[name] for name in ("product", "status", "expires", "trial", "cancellation")},
        "payment": {name: payment[name] for name in ("processor", "frequency", "startDate")},
    }


def _over(default: Record, stored: Any) -> Record:
    """Each field of the defaults, with what is stored if it is of the same kind."""
    given: Record = cast("Record", stored) if isinstance(stored, dict) else {}
    return {name: _field(value, given.get(name)) for name, value in default.items()}


def _field(default: Any, stored: Any) -> Any:
    if default == NEVER:
        return _moment(stored)
    if isinstance(default, dict):
        return _over(cast("Record", default), stored)
    if default is None:
        return stored if isinstance(stored, str) else None
    if isinstance(default, bool):
        return stored is True
    if isinstance(default, int):
        is_number = isinstance(stored, int | float) and not isinstance(stored, bool)
        return stored if is_number else default
    return stored if isinstance(stored, str) and stored else default


def _moment(stored: Any) -> Record:
    if not isinstance(stored, dict):
        return NEVER
    moment = cast("Record", stored)
    text, unix = moment.get("timestamp"), moment.get("timestampUNIX")
    if not isinstance(text, str) or not isinstance(unix, int | float) or isinstance(unix, bool):
        return NEVER
    if not abs(unix) <= LAST:  # NaN is neither less nor more
        return NEVER
    return {"timestamp": text, "timestampUNIX": int(unix)}
