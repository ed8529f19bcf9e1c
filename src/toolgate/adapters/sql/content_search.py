"""Exact substring search without case: no character of the text is a wildcard.

PostgreSQL finds the rows with its trigram indexes by itself. On SQLite the numbers of the
project's rows with the text's trigrams are looked up first. Its index knows no projects: where it
names more rows than the project has at all, or the text is too short for it, all rows of the
project are read. Either way the text itself is compared in the end.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    Connection,
    Integer,
    Select,
    Table,
    bindparam,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
    true,
)

from toolgate.adapters.sql.content_lists import Condition, Listing
from toolgate.db.content_tables import totals
from toolgate.ports.content import folded

TRIGRAM = 3
ESCAPE = "\\"
LISTED = "numbers"


class Search(NamedTuple):
    """The values for the statement's parameters; none when nothing can be found."""

    values: dict[str, str] | None
    listed: bool = False
    """Whether the rows that may have the texts are known by number."""


def search(
    connection: Connection, listing: Listing, project: str, wanted: Mapping[str, str]
) -> Search:
    """How to find the project's rows that contain all these texts."""
    texts = {name: folded(one) for name, one in wanted.items()}
    if any("\0" in one for one in texts.values()):  # PostgreSQL neither stores it nor takes it
        return Search(None)
    if connection.dialect.name != "sqlite":
        return Search({name: _pattern(one) for name, one in texts.items()})
    long = {name: one for name, one in texts.items() if len(one) >= TRIGRAM}
    numbers = _numbers(connection, listing, project, long) if long else None
    if numbers is None:
        return Search(texts)
    return Search(texts | {LISTED: orjson.dumps(numbers).decode()}, listed=True)


def contains(dialect: str, listing: Listing, name: str) -> Condition:
    """One of the text's columns contains it."""
    columns = [listing.table.c[one] for one in listing.texts[name]]
    if dialect == "sqlite":
        return or_(*(func.instr(one, bindparam(name)) > 0 for one in columns))
    return or_(*(one.like(bindparam(name), escape=ESCAPE) for one in columns))


def listed(listing: Listing) -> Condition:
    """The row is one of those known by number."""
    numbers = select(column("value", Integer)).select_from(func.json_each(bindparam(LISTED)))
    return listing.table.c.number.in_(numbers)


def _pattern(wanted: str) -> str:
    for special in (ESCAPE, "%", "_"):
        wanted = wanted.replace(special, ESCAPE + special)
    return f"%{wanted}%"


def _numbers(
    connection: Connection, listing: Listing, project: str, wanted: Mapping[str, str]
) -> list[int] | None:
    """The project's rows that may have these texts, unless other projects have too many."""
    values = {"trigrams": _trigrams(listing, wanted), "project": project}
    rows: Sequence[Any] = connection.execute(_with_trigrams(listing.table), values).all()
    too_many = rows[0][0]
    return None if too_many else [row[1] for row in rows if row[1] is not None]


@lru_cache
def _with_trigrams(rows: Table) -> Select[Any]:
    index = f"{rows.name}_fts"
    matching = literal_column(index).op("MATCH")(bindparam("trigrams"))
    known = (totals.c.project_id == bindparam("project")) & (totals.c.list == rows.name)
    most = select(func.coalesce(func.sum(totals.c.total), 0)).where(known).scalar_subquery()
    found = select(column("rowid", Integer).label("number")).select_from(table(index))
    cut = found.where(matching).limit(most + 1).cte("found")
    # The `+` keeps SQLite from walking through the whole project for a few rows.
    own = literal_column(f"+{rows.name}.project_id", rows.c.project_id.type) == bindparam("project")
    mine = select(rows.c.number).where(rows.c.number.in_(select(cut.c.number)), own).subquery()
    many = select((func.count() > most).label("too_many")).select_from(cut).subquery()
    chosen: Any = select(many.c.too_many, mine.c.number)
    return chosen.select_from(many.outerjoin(mine, true()))


def _trigrams(listing: Listing, wanted: Mapping[str, str]) -> str:
    """What a row with these texts must have in its columns: as few trigrams as cover each text."""
    asked: list[str] = []
    for name, one in wanted.items():
        starts = {*range(0, len(one) - TRIGRAM, TRIGRAM), len(one) - TRIGRAM}
        parts = [one[start : start + TRIGRAM].replace('"', '""') for start in sorted(starts)]
        together = " AND ".join(f'"{part}"' for part in parts)
        asked.append(f"{{{' '.join(listing.texts[name])}}} : ({together})")
    return " AND ".join(asked)
