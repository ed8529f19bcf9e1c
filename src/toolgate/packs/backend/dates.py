"""Dates that callers write: ISO 8601 or unix seconds. What nobody can read is refused.

A date that is misread sends mail to many at the wrong time, most often at once. So a text of digits
alone is read only where it can mean one thing: eight are a day (`20300131`), nine to eleven are
seconds.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT

MAX_AHEAD = timedelta(days=3660)
"""Further away a date is a mistake, such as milliseconds."""
FIRST_DUE = datetime(2000, 1, 1, tzinfo=UTC)
"""Nothing was to be sent before this: such a date is a mistake, such as a year read as seconds."""
LEAST_SECONDS = 100_000_000
"""Fewer are a day or a year; 0 is the beginning of all time."""
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?", re.ASCII)
DAY = re.compile(r"[0-9]{8}", re.ASCII)
SECONDS = re.compile(r"0|[0-9]{9,11}(\.[0-9]+)?", re.ASCII)
FORMS = (
    "must be a date in ISO 8601, such as 2027-01-31T09:00:00Z or 20270131, or unix seconds, such "
    "as 1801386000"
)
TOO_FAR = "is more than ten years ahead. Unix dates are seconds, not milliseconds"


class BadDate(ValueError):
    """Not a date that can be read; the message is the end of a sentence."""


def _check_kind(value: object, info: ValidationInfo) -> object:
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return value
    told = {"field": info.field_name, "forms": FORMS}
    raise PydanticCustomError(TOLD_FORMAT, "{field} {forms}", told)


Moment = Annotated[str | int | float | None, BeforeValidator(_check_kind)]
"""An argument that `read_date` or `read_due` reads."""


def read_due(value: object, now: datetime) -> datetime:
    """When something is to be sent or published; a moment that is past means now."""
    moment = read_date(value, now)
    if moment < FIRST_DUE:
        raise BadDate(f"would be in {moment.year}, decades in the past. It {FORMS}")
    return moment


def read_date(value: object, now: datetime) -> datetime:
    """The moment that a caller means; without an offset it is UTC, `now` is now."""
    text = value.strip() if isinstance(value, str) else None
    if text is not None and text.lower() == "now":
        return now
    moment = _from_number(value) if text is None else _from_text(text)
    if moment is None:
        raise BadDate(FORMS)
    if moment > now + MAX_AHEAD:
        raise BadDate(TOO_FAR)
    return moment


def _from_number(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value != 0 and value < LEAST_SECONDS:
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        raise BadDate(TOO_FAR) from None


def _from_text(text: str) -> datetime | None:
    if SECONDS.fullmatch(text):
        return _from_number(float(text))
    if NUMBER.fullmatch(text) and not DAY.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
