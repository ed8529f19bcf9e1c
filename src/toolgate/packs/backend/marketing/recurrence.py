"""When a campaign that recurs is due again."""

import calendar
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from toolgate.gate.tool import Input


class Pattern(StrEnum):
    """How often."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    MONTHLY_WEEKDAY = "monthly-weekday"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"


MONTHS = {Pattern.MONTHLY: 1, Pattern.QUARTERLY: 3, Pattern.YEARLY: 12}
DAYS = {Pattern.DAILY: 1, Pattern.WEEKLY: 7}


class Recurrence(Input):
    """A pattern, counted from the first date: the 31st is the last day of shorter months."""

    pattern: Literal["daily", "weekly", "monthly", "monthly-weekday", "quarterly", "yearly"]
    nth: Annotated[int, Field(ge=1, le=4)] = 1
    """With `monthly-weekday`: the first to fourth such day of the month."""
    day: Annotated[int, Field(ge=0, le=6)] = 0
    """With `monthly-weekday`: 0 for Sunday to 6 for Saturday."""


def next_date(recurrence: Recurrence, first: datetime, now: datetime) -> datetime:
    """The next date after now: those that were missed are not made up for.

    `first` is the date that the pattern is counted from; its time of day stays.
    """
    pattern = Pattern(recurrence.pattern)
    if pattern in DAYS:
        step = timedelta(days=DAYS[pattern])
        passed = max(0, (now - first) // step + 1) if now >= first else 1
        return first + passed * step
    if pattern is Pattern.MONTHLY_WEEKDAY:
        return _next_weekday(recurrence, first, now)
    step = MONTHS[pattern]
    number = max(1, _months_between(first, now) // step)
    while (date := _months_after(first, number * step)) <= max(now, first):
        number += 1
    return date


def _next_weekday(recurrence: Recurrence, first: datetime, now: datetime) -> datetime:
    after = max(now, first)
    months = _months_between(first, after)
    while (date := _weekday_of(recurrence, _months_after(first, months))) <= after:
        months += 1
    return date


def _weekday_of(recurrence: Recurrence, month: datetime) -> datetime:
    """The nth such weekday in the month of this date."""
    start = month.replace(day=1)
    sunday_first = (start.weekday() + 1) % 7
    days = (recurrence.day - sunday_first) % 7 + 7 * (recurrence.nth - 1)
    return start + timedelta(days=days)


def _months_between(first: datetime, now: datetime) -> int:
    return max(0, (now.year - first.year) * 12 + now.month - first.month)


def _months_after(first: datetime, months: int) -> datetime:
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return first.replace(year=year, month=month + 1, day=min(first.day, last))
