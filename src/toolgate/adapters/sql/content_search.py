"""Exact substring search without case: no character of the text is a wildcard.

PostgreSQL finds the rows with its trigram indexes by itself. On SQLite a trigram index is asked by
name. It knows no projects: where it names more rows than the project has at all, or the text is
too short for it, all rows of the project are read. Either way the text itself is compared in the
end.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
)

from toolgate.adapters.sql.content_lists import Condition, Listing
from toolgate.db.content_tables import totals
from toolgate.ports.content import folded

TRIGRAM = 3
ESCAPE = "\\"
TRIGRAMS = "trigrams"


class Search(NamedTuple):
    """The values for the statement's parameters; none when nothing can be found."""

    values: dict[str, str] | None
    indexed: bool = False
    """Whether SQLite's trigram index names the rows that may have the texts."""


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
    trigrams = _trigrams(listing, long)
    if not long or _too_many(connection, listing.table, project, trigrams):
        return Search(texts)
    return Search(texts | {TRIGRAMS: trigrams}, indexed=True)


def contains(dialect: str, listing: Listing, name: str) -> Condition:
    """One of the text's columns contains it."""
    columns = [listing.table.c[one] for one in listing.texts[name]]
    if dialect == "sqlite":
        return or_(*(func.instr(one, bindparam(name)) > 0 for one in columns))
    return or_(*(one.like(bindparam(name), escape=ESCAPE) for one in columns))


def of_project(listing: Listing, *, indexed: bool) -> Condition:
    """The row is the project's, and one that SQLite's trigram index names where it is asked."""
    rows = listing.table
    if not indexed:
        return rows.c.project_id == bindparam("project")
    # The `+` keeps SQLite from walking through the whole project for a few rows.
    own = literal_column(f"+{rows.name}.project_id", rows.c.project_id.type) == bindparam("project")
    return and_(rows.c.number.in_(_named(rows)), own)


def _pattern(wanted: str) -> str:
    for special in (ESCAPE, "%", "_"):
        wanted = wanted.replace(special, ESCAPE + special)
    return f"%{wanted}%"


def _named(rows: Table) -> Select[Any]:
    """The numbers of the rows with the text's trigrams, of all projects."""
    index = f"{rows.name}_fts"
    matching = literal_column(index).op("MATCH")(bindparam(TRIGRAMS))
    return select(column("rowid", Integer)).select_from(table(index)).where(matching)


def _too_many(connection: Connection, rows: Table, project: str, trigrams: str) -> bool:
    """Whether the index names more rows than the project has."""
    values = {TRIGRAMS: trigrams, "project": project}
    return bool(connection.execute(_more_than_own(rows), values).scalar())


@lru_cache
def _more_than_own(rows: Table) -> Select[Any]:
    known = (totals.c.project_id == bindparam("project")) & (totals.c.list == rows.name)
    own = select(func.coalesce(func.sum(totals.c.total), 0)).where(known).scalar_subquery()
    named = _named(rows).limit(own + 1).subquery()
    return select(select(func.count()).select_from(named).scalar_subquery() > own)


def _trigrams(listing: Listing, wanted: Mapping[str, str]) -> str:
    """What a row with these texts must have in its columns: as few trigrams as cover each text."""
    asked: list[str] = []
    for name, one in wanted.items():
        starts = {*range(0, len(one) - TRIGRAM, TRIGRAM), len(one) - TRIGRAM}
        parts = [one[start : start + TRIGRAM].replace('"', '""') for start in sorted(starts)]
        together = " AND ".join(f'"{part}"' for part in parts)
        asked.append(f"{{{' '.join(listing.texts[name])}}} : ({together})")
    return " AND ".join(asked)
