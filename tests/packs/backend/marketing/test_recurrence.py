"""When a campaign that recurs is due again: always later than now, and on the right day."""

import calendar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.packs.backend.marketing.recurrence import Recurrence, next_date

moments = st.datetimes(datetime(2020, 1, 1), datetime(2034, 12, 31), timezones=st.just(UTC)).map(
    lambda one: one.replace(microsecond=0)
)
patterns = st.builds(
    Recurrence,
    pattern=st.sampled_from(
        ["daily", "weekly", "monthly", "monthly-weekday", "quarterly", "yearly"]
    ),
    nth=st.integers(1, 4),
    day=st.integers(0, 6),
)


def is_date(recurrence: Recurrence, first: datetime, date: datetime) -> bool:
    """Whether a day belongs to the pattern, by its definition."""
    days, last = (date.date() - first.date()).days, calendar.monthrange(date.year, date.month)[1]
    months = (date.year - first.year) * 12 + date.month - first.month
    same_day = date.day == min(first.day, last)
    match recurrence.pattern:
        case "daily":
            return True
        case "weekly":
            return days % 7 == 0
        case "monthly-weekday":
            is_day = date.isoweekday() % 7 == recurrence.day
            return is_day and (date.day - 1) // 7 + 1 == recurrence.nth
        case "monthly":
            return same_day
        case "quarterly":
            return same_day and months % 3 == 0
        case _:
            return same_day and months % 12 == 0


@given(patterns, moments, moments)
def test_it_is_the_first_date_of_the_pattern_after_now(
    recurrence: Recurrence, first: datetime, now: datetime
) -> None:
    found = next_date(recurrence, first, now)
    expected = first
    while not (expected > max(first, now) and is_date(recurrence, first, expected)):
        ahead = max(now, first) - expected
        expected += timedelta(days=max(1, ahead.days)) if ahead.days > 1 else timedelta(days=1)
    assert found == expected


@pytest.mark.parametrize(
    ("given", "first", "now", "expected"),
    [
        ({"pattern": "yearly"}, "2024-02-29", "2024-03-01", "2025-02-28"),
        ({"pattern": "yearly"}, "2024-02-29", "2027-03-01", "2028-02-29"),
        ({"pattern": "monthly"}, "2025-01-31", "2025-02-01", "2025-02-28"),
        ({"pattern": "monthly"}, "2025-01-31", "2025-02-28", "2025-03-31"),
        ({"pattern": "quarterly"}, "2025-11-30", "2025-12-01", "2026-02-28"),
        ({"pattern": "monthly-weekday", "nth": 4, "day": 5}, "2026-01-01", "2026-01-24",
         "2026-02-27"),
        ({"pattern": "daily"}, "2020-01-01", "2026-11-16", "2026-11-17"),
        ({"pattern": "weekly"}, "2026-11-16", "2026-11-16", "2026-11-23"),
    ],
)  # fmt: skip
def test_examples(given: dict[str, Any], first: str, now: str, expected: str) -> None:
    recurrence = Recurrence.model_validate(given)
    dates = [datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (first, now)]
    assert f"{next_date(recurrence, *dates):%Y-%m-%d}" == expected


def test_there_is_no_fifth_friday() -> None:
    with pytest.raises(ValueError, match="nth"):
        Recurrence.model_validate({"pattern": "monthly-weekday", "nth": 5, "day": 5})
