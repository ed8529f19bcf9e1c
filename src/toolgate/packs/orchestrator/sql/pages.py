"""Rows as the tools take them, and pages that end early where their rows are large."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Select

from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.sql.records import PAGE_BYTES


def every(connection: Connection, wanted: "Select[*tuple[Any, ...]]") -> list[Row]:
    """All the rows of a statement."""
    return [dict(row) for row in connection.execute(wanted).mappings()]


def first(connection: Connection, wanted: "Select[*tuple[Any, ...]]") -> Row | None:
    """The first of them."""
    row = connection.execute(wanted).mappings().first()
    return dict(row) if row is not None else None


def size_of(row: Row) -> int:
    """About how many bytes a row takes in an answer."""
    return sum(len(name) + len(str(value).encode()) + 6 for name, value in row.items())


def bounded(
    rows: Sequence[Row], limit: int, size: Callable[[Row], int] = size_of
) -> tuple[list[Row], bool]:
    """Of one row more than a page may have, those that fit, and whether others follow."""
    fitting: list[Row] = []
    room = PAGE_BYTES
    for row in rows[:limit]:
        room -= size(row)
        if fitting and room < 0:
            break
        fitting.append(row)
    return fitting, len(rows) > len(fitting)
