"""Dates that callers write: ISO 8601 or unix seconds. What nobody can read is refused."""

import math
import re
from datetime import UTC, datetime, timedelta

MAX_AHEAD = timedelta(days=3660)
"""Further away a date is a mistake, such as milliseconds."""
UNIX = re.compile(r"[0-9]{1,12}(\.[0-9]+)?", re.ASCII)


class BadDate(ValueError):
    """Not a date that can be read; the message is the end of a sentence."""


def read_date(value: object, now: datetime) -> datetime:
    """The moment that a caller means; without an offset it is UTC, `now` is now."""
    if isinstance(value, str) and value.strip().lower() == "now":
        return now
    moment = _from_number(value)
    if moment is None and isinstance(value, str):
        moment = _from_text(value.strip())
    if moment is None:
        raise BadDate("must be a date in ISO 8601, such as 2027-01-31T09:00:00Z, or unix seconds")
    if moment > now + MAX_AHEAD:
        raise BadDate("is more than ten years ahead. Unix dates are seconds, not milliseconds")
    return moment


def _from_number(value: object) -> datetime | None:
    if isinstance(value, str) and UNIX.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        raise BadDate(
            "is more than ten years ahead. Unix dates are seconds, not milliseconds"
        ) from None


def _from_text(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
