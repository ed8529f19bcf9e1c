"""What writes do to rows, described so that PostgreSQL takes those of several in one statement.

A write is a few parts: it inserts, replaces or deletes a record, and adds rows that belong to it,
such as its change and its audit row. A part that may find its record in another state than it was
told is a guard: where it does, nothing of its write is stored.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import JSON, BigInteger, Integer, LargeBinary, Table

from toolgate.db.connections import to_json

Column = tuple[str, str]
"""A name, and PostgreSQL's type."""


class Part(NamedTuple):
    """One thing that is done to rows of a table."""

    columns: tuple[Column, ...]
    """The values of each row."""
    statement: str
    """With `{rows}` for the rows, which have these columns and the `number` of their write."""
    guard: str | None = None
    """The numbers of the writes that found what they should, by `{rows}` and by `{done}`, which is
    what the statement returns."""
    record: int = 0
    """How many of the first columns name the record; of a guard."""


class RowWrite(NamedTuple):
    """A part of one write, and its rows."""

    part: Part
    rows: Sequence[tuple[Any, ...]]


def columns_of(table: Table, names: Iterable[str]) -> tuple[Column, ...]:
    """Columns of a table with their types."""
    return tuple((name, _type(table.c[name].type)) for name in names)


def _type(kind: Any) -> str:
    if isinstance(kind, JSON):
        return "json"
    if isinstance(kind, LargeBinary):
        return "bytea"
    if isinstance(kind, BigInteger):
        return "int8"
    return "int4" if isinstance(kind, Integer) else "text"


def insertion(table: Table, names: Sequence[str], *, computed: str = "", rest: str = "") -> Part:
    """A part that adds rows; `computed`: one more column as `NAME EXPRESSION`."""
    name, _, expression = computed.partition(" ")
    columns, values = ", ".join(names), ", ".join(names)
    if name:
        columns, values = f"{columns}, {name}", f"{values}, {expression}"
    # Names from our own tables.
    words = f"INSERT INTO {table.name} ({columns}) SELECT {values} FROM {{rows}} ORDER BY number"  # noqa: S608
    return Part(columns_of(table, names), f"{words} {rest}".rstrip())


def record_of(write: Sequence[RowWrite]) -> Any:
    """Which record a write guards; None for none. Two of one record cannot share a statement."""
    for part, rows in write:
        if part.guard:
            return rows[0][: part.record]
    return None


def combine(writes: Sequence[Sequence[RowWrite]]) -> tuple[str, list[list[Any]]]:
    """One statement for all, and its values; it returns the numbers of those that are stored.

    Each write has at most one guard, of one row. Those without have nothing to find.
    """
    rows: dict[Part, list[tuple[Any, ...]]] = {}
    for number, write in enumerate(writes):
        if not any(part.guard for part, _ in write):
            rows.setdefault(UNGUARDED, []).append((number,))
        for part, theirs in write:
            if theirs:
                rows.setdefault(part, []).extend((number, *row) for row in theirs)
    parts = sorted(rows, key=lambda part: (part.guard is None, part.statement))
    values = [column for part in parts for column in _values(part, rows[part])]
    return _statement(tuple(parts)), values


def _values(part: Part, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """The values by columns; the first is the numbers of the writes."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    for at, (_, kind) in enumerate(part.columns, 1):
        if kind == "json":
            columns[at] = [None if one is None else to_json(one) for one in columns[at]]
    return columns


UNGUARDED = Part((), "SELECT number FROM {rows}", guard="SELECT number FROM {done}")
"""Writes that have no guard."""


@lru_cache(maxsize=256)
def _statement(parts: tuple[Part, ...]) -> str:
    blocks: list[str] = []
    guards: list[str] = []
    first = 1
    for at, part in enumerate(parts):
        rows, done = f"rows_{at}", f"done_{at}"
        blocks.append(f"{rows} AS ({_given(part.columns, first)})")
        first += 1 + len(part.columns)
        if part.guard:
            blocks.append(f"{done} AS ({part.statement.format(rows=rows)})")
            guards.append(part.guard.format(rows=rows, done=done))
            continue
        if guards:
            blocks.append(f"stored AS ({' UNION ALL '.join(guards)})")
            guards.clear()
        which = f"(SELECT * FROM {rows} WHERE number IN (SELECT number FROM stored)) AS those"  # noqa: S608
        blocks.append(f"{done} AS ({part.statement.format(rows=which)})")
    if guards:
        blocks.append(f"stored AS ({' UNION ALL '.join(guards)})")
    return f"WITH {', '.join(blocks)} SELECT number FROM stored"  # noqa: S608


def _given(columns: Sequence[Column], first: int) -> str:
    """Rows from arrays, one for each column."""
    kinds = ["int4", *("text" if kind == "json" else kind for _, kind in columns)]
    arrays = ", ".join(f"${at}::{kind}[]" for at, kind in enumerate(kinds, first))
    names = ", ".join(["number", *(name for name, _ in columns)])
    chosen = ["number", *(f"{name}::json" if kind == "json" else name for name, kind in columns)]
    return f"SELECT {', '.join(chosen)} FROM unnest({arrays}) AS given({names})"  # noqa: S608


Rows = Callable[[], Sequence[RowWrite]]
"""What a write does to rows, worked out when it is about to be stored."""
