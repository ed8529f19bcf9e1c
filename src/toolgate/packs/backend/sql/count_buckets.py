"""The numbers as they are stored: how many end in each second, 256 seconds, and so on."""

from collections import Counter
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, delete, func, select, text, union_all

from toolgate.db.many_rows import ManyRows
from toolgate.db.prepared import PreparedWrite
from toolgate.db.row_writes import Part, columns_of
from toolgate.packs.backend.sql.count_tables import counts
from toolgate.packs.backend.stats.counting import Numbers

LEVELS, BITS = 5, 8
"""Of the buckets: 256 of a level are one of the next."""
PLAIN = -1
"""The level of what does not end."""
PAGE = 5_000
"""Rows of one statement."""
KEY = ("level", "bucket", "name")
_more = (
    "ON CONFLICT (level, bucket, name) "
    f"DO UPDATE SET number = {counts.name}.number + excluded.number"
)
_into = f"INSERT INTO {counts.name} (level, bucket, name, number)"
ADD = ManyRows(
    # `number` is the name of a row's own number.
    Part(
        (*columns_of(counts, KEY), ("how_many", "int8")),
        f"{_into} SELECT level, bucket, name, how_many FROM {{rows}} ORDER BY number {_more}",  # noqa: S608
    ),
    PreparedWrite(text(f"{_into} VALUES (:level, :bucket, :name, :number) {_more}")),
    (*KEY, "number"),
)
REMOVE_EMPTY = delete(counts).where(
    *(counts.c[key] == bindparam(f"of_{key}") for key in KEY), counts.c.number == 0
)


def numbers_after(second: int) -> Any:
    """How many of what end at this second or later, or do not end."""
    every = buckets_after(second).subquery()
    return select(every.c.name, func.sum(every.c.number)).group_by(every.c.name)


def buckets_after(second: int) -> Any:
    """What ends at this second or later, and what does not end.

    At most 256 buckets of each level, however many users there are and seconds in which they end.
    """
    parts = [select(counts.c.name, counts.c.number).where(counts.c.level == PLAIN)]
    for level in range(LEVELS):
        here = second >> (BITS * level)
        first = here if level == 0 else here + 1
        last = here | (2**BITS - 1)
        part = select(counts.c.name, counts.c.number).where(
            counts.c.level == level, counts.c.bucket >= first
        )
        parts.append(part if level == LEVELS - 1 else part.where(counts.c.bucket <= last))
    return union_all(*parts)


def add_to_buckets(connection: Connection, numbers: Numbers) -> None:
    """Add numbers to those that are stored."""
    buckets: Counter[tuple[int, int, str]] = Counter()
    for (what, ends), number in numbers.items():
        name = orjson.dumps(list(what)).decode()
        if not what.plan:
            buckets[PLAIN, 0, name] += number
            continue
        for level in range(LEVELS):
            buckets[level, ends >> (BITS * level), name] += number
    rows = [(*key, number) for key, number in sorted(buckets.items()) if number]
    for first in range(0, len(rows), PAGE):
        ADD.run(connection, rows[first : first + PAGE])
    # Only what something was taken from can have come to nothing: of numbers that were counted
    # anew, with a bucket for each second in which a subscription ends, that is none.
    names = [f"of_{key}" for key in KEY]
    less = [dict(zip(names, key, strict=True)) for key, number in buckets.items() if number < 0]
    if less:
        connection.execute(REMOVE_EMPTY, less)
