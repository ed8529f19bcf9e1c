"""What writes do to rows, described so that PostgreSQL takes those of several in one statement.

A write is a few parts: it inserts, replaces or deletes a record, and adds rows that belong to it,
such as its change and its audit row. A part that may find its record in another state than it was
told is a guard: where it does, nothing of its write is stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import JSON, BigInteger, Integer, LargeBinary, String, Table

from toolgate.db.connections import to_json

# A JSON value as its text: so nothing of it is changed on the way, such as the order of its fields.
ENCODERS: Mapping[str, Callable[[Any], str]] = {"json": to_json, "bytea": bytes.hex}
DECODERS = {"text": "{}", "bytea": "decode({}, 'hex')"}
"""Other types are cast."""
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
    if isinstance(kind, Integer):
        return "int4"
    if isinstance(kind, String):
        return "text"
    raise TypeError(f"rows with columns of type {kind!r} cannot be told")


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


def weight_of_rows(write: Sequence[RowWrite], most: int) -> int:
    """About how many bytes the values of a write have."""
    weight = 0
    for _, rows in write:
        for row in rows:
            for value in row:
                if value.__class__ is str or value.__class__ is bytes:  # nearly all of them
                    weight += len(value)
                elif value is not None and value.__class__ is not int:
                    weight += weight_of(value, most)
    return weight


def weight_of(value: Any, most: int, each: int = 8) -> int:
    """About how many bytes a value has, and `each` for every value in it.

    No more of it is looked at than it takes to know that there are more than `most`.
    """
    weight = 0
    left: list[Any] = [value]
    while left and weight <= most:
        one = left.pop()
        inner: Iterable[Any] = ()
        if isinstance(one, str | bytes):
            weight += len(one)
        elif isinstance(one, dict):
            pairs = cast("dict[str, Any]", one)
            weight += sum(map(len, pairs)) if len(pairs) * each <= most else 0
            inner = pairs.values()
        elif isinstance(one, list | tuple):
            inner = cast("Sequence[Any]", one)
        elif one is not None and not isinstance(one, int | float) and is_dataclass(one):
            inner = [getattr(one, field.name) for field in fields(one)]
        before = len(left)
        left += inner
        weight += (len(left) - before) * each
    return weight


def combine(writes: Sequence[Sequence[RowWrite]]) -> tuple[str, list[str]]:
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
    values = [_value(part, rows[part]) for part in parts]
    return _statement(tuple(parts)), values


def _value(part: Part, rows: Sequence[tuple[Any, ...]]) -> str:
    """The rows of a part as one value.

    Both sides take a quarter of the time for it that they take for an array for each column.
    """
    encoded = [(at, encode) for at, encode in enumerate(_encoders(part)) if encode]
    if not encoded:
        return to_json(rows)
    changed = [list(row) for row in rows]
    for row in changed:
        for at, encode in encoded:
            if row[at] is not None:
                row[at] = encode(row[at])
    return to_json(changed)


def _encoders(part: Part) -> list[Callable[[Any], str] | None]:
    """For the number of a write and each column, what makes a value fit for JSON."""
    return [None, *(ENCODERS.get(kind) for _, kind in part.columns)]


UNGUARDED = Part((), "SELECT number FROM {rows}", guard="SELECT number FROM {done}")
"""Writes that have no guard."""


@lru_cache(maxsize=256)
def _statement(parts: tuple[Part, ...]) -> str:
    blocks: list[str] = []
    guards: list[str] = []
    for at, part in enumerate(parts):
        rows, done = f"rows_{at}", f"done_{at}"
        blocks.append(f"{rows} AS ({_given(part.columns, f'${at + 1}')})")
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


def statement_of(part: Part, value: str) -> str:
    """The statement of a part alone, whatever it finds, with the place of its value."""
    return part.statement.format(rows=f"({_given(part.columns, value)}) AS those")


def value_of(part: Part, rows: Sequence[tuple[Any, ...]]) -> str:
    """The rows of a part alone as one value."""
    return _value(part, [(number, *row) for number, row in enumerate(rows)])


def _given(columns: Sequence[Column], value: str) -> str:
    """The rows of a part, from its value."""
    chosen = ["CAST(given.row ->> 0 AS int4) AS number"]
    for at, (name, kind) in enumerate(columns, 1):
        words = DECODERS.get(kind, f"CAST({{}} AS {kind})").format(f"(given.row ->> {at})")
        chosen.append(f"{words} AS {name}")
    rows = f"jsonb_array_elements(CAST({value} AS jsonb)) AS given (row)"
    return f"SELECT {', '.join(chosen)} FROM {rows}"  # noqa: S608


Rows = Callable[[], Sequence[RowWrite]]
"""What a write does to rows, worked out when it is about to be stored."""
