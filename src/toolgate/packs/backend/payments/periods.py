"""How long is paid for at a time."""

import calendar
from datetime import UTC, datetime, timedelta

MONTHS = {"monthly": 1, "annually": 12}
DAYS = {"weekly": 7, "daily": 1}
FREQUENCIES = (*MONTHS, *DAYS)


def next_end(end: int, frequency: str, anchor: int) -> int:
    """When the period after this one ends; months end on the day of the anchor, or before it."""
    moment = datetime.fromtimestamp(end, UTC)
    if frequency in DAYS:
        return int((moment + timedelta(days=DAYS[frequency])).timestamp())
    months = moment.month - 1 + MONTHS.get(frequency, 1)
    year, month = moment.year + months // 12, months % 12 + 1
    day = min(datetime.fromtimestamp(anchor, UTC).day, calendar.monthrange(year, month)[1])
    return int(moment.replace(year=year, month=month, day=day).timestamp())
