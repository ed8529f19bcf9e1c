"""Exact substring search without case: no character of the text is a wildcard.

PostgreSQL finds the rows with its trigram indexes by itself. SQLite is asked for the numbers of
all rows with the text first; where these are more than the project has rows at all, or the text
is too short for trigrams, reading the project's rows is less work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson
from sqlalchemy import (
    Connection,
    Integer,
    Select,
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
LISTED = "numbers"

HOW_MANY = select(totals.c.total).where(
    totals.c.project_id == bindparam("project"), totals.c.list == bindparam("list")
)


@dataclass(frozen=True, slots=True)
class Search:
    """Which texts the statement looks for itself, and the values for its parameters."""

    texts: tuple[str, ...]
    values: dict[str, str]
    nothing: bool = False

    @property
    def listed(self) -> bool:
        """Whether the rows with the longer texts are known by number already."""
        return LISTED in self.values


def search(
    connection: Connection, listing: Listing, project: str, wanted: Mapping[str, str]
) -> Search:
    """How to find the project's rows that contain all these texts."""
    texts = {name: folded(one) for name, one in wanted.items()}
    if any("\0" in one for one in texts.values()):  # PostgreSQL neither stores it nor takes it
        return Search((), {}, nothing=True)
    if connection.dialect.name != "sqlite":
        return Search(tuple(texts), {name: _pattern(one) for name, one in texts.items()})
    long = {name: one for name, one in texts.items() if len(one) >= TRIGRAM}
    numbers = _numbers(connection, listing, project, long) if long else None
    if numbers is None:
        return Search(tuple(texts), texts)
    short = {name: one for name, one in texts.items() if name not in long}
    return Search(tuple(short), short | {LISTED: orjson.dumps(numbers).decode()})


def contains(dialect: str, listing: Listing, name: str) -> Condition:
    """One of the text's columns contains it."""
    columns = [listing.table.c[one] for one in listing.texts[name]]
    if dialect == "sqlite":
        return or_(*(func.instr(one, bindparam(name)) > 0 for one in columns))
    return or_(*(one.like(bindparam(name), escape=ESCAPE) for one in columns))


def listed(listing: Listing) -> tuple[Condition, Condition]:
    """The rows of the project among those known by number.

    The `+` keeps SQLite from walking through the whole project for a few of them.
    """
    rows = listing.table
    numbers = select(column("value", Integer)).select_from(func.json_each(bindparam(LISTED)))
    own = literal_column(f"+{rows.name}.project_id", rows.c.project_id.type)
    return rows.c.number.in_(numbers), own == bindparam("project")


def _pattern(wanted: str) -> str:
    for special in (ESCAPE, "%", "_"):
        wanted = wanted.replace(special, ESCAPE + special)
    return f"%{wanted}%"


def _numbers(
    connection: Connection, listing: Listing, project: str, wanted: Mapping[str, str]
) -> list[int] | None:
    """The rows of all projects with these texts, unless they are more than the project's rows."""
    name = listing.table.name
    most = connection.scalar(HOW_MANY, {"project": project, "list": name}) or 0
    values = {"phrases": _phrases(listing, wanted), "most": most + 1}
    found = list(connection.scalars(_with_phrases(name), values))
    return found if len(found) <= most else None


@lru_cache
def _with_phrases(name: str) -> "Select[int]":
    index = f"{name}_fts"
    matching = literal_column(index).op("MATCH")(bindparam("phrases"))
    chosen = select(column("rowid", Integer)).select_from(table(index)).where(matching)
    return chosen.limit(bindparam("most"))


def _phrases(listing: Listing, wanted: Mapping[str, str]) -> str:
    quoted = {name: '"' + one.replace('"', '""') + '"' for name, one in wanted.items()}
    return " AND ".join(
        f"{{{' '.join(listing.texts[name])}}} : {one}" for name, one in quoted.items()
    )
