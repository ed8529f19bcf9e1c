"""Exact substring search without case: no character of the text is a wildcard.

Trigram indexes name the rows with the text's trigrams and the end of the project's id. SQLite's are
asked by name, PostgreSQL finds its own by itself. Where a text is too short for them, all rows of
the project are read. Either way the text itself is compared in the end.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import (
    Integer,
    and_,
    bindparam,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
)

from toolgate.packs.content.sql.lists import Condition, Listing
from toolgate.packs.content.store import fold

TRIGRAM = 3
ESCAPE = "\\"
TRIGRAMS = "trigrams"
PROJECT = "project_end"
"""The last characters of the project's id: SQLite's column, PostgreSQL's parameter."""


class Search(NamedTuple):
    """The values for the statement's parameters; none when nothing can be found."""

    values: dict[str, str] | None
    indexed: bool = False
    """Whether a trigram index can name the rows that may have the texts."""


def search(dialect: str, listing: Listing, project: str, filters: Mapping[str, str]) -> Search:
    """How to find the project's rows that contain all these texts."""
    texts = {name: fold(one) for name, one in filters.items()}
    if any("\0" in one for one in texts.values()):  # PostgreSQL neither stores it nor takes it
        return Search(None)
    long = {name: one for name, one in texts.items() if len(one) >= TRIGRAM}
    if dialect != "sqlite":
        values = {name: _pattern(one) for name, one in texts.items()}
        values[PROJECT] = _pattern(project[-TRIGRAM:])
        return Search(values, indexed=bool(long))
    if not long:
        return Search(texts)
    return Search(texts | {TRIGRAMS: _trigrams(listing, project, long)}, indexed=True)


def contains(dialect: str, listing: Listing, name: str) -> Condition:
    """One of the text's columns contains it."""
    columns = [listing.table.c[one] for one in listing.texts[name]]
    if dialect == "sqlite":
        return or_(*(func.instr(one, bindparam(name)) > 0 for one in columns))
    return or_(*(one.like(bindparam(name), escape=ESCAPE) for one in columns))


def of_project(dialect: str, listing: Listing, *, indexed: bool) -> Condition:
    """The row is the project's; where a trigram index can be used, also in its words."""
    rows = listing.table
    own = rows.c.project_id == bindparam("project")
    if not indexed:
        return own
    if dialect != "sqlite":
        # Word for word what is indexed, so no parameter for the number.
        end = func.right(rows.c.project_id, literal_column(str(TRIGRAM)))
        return and_(own, end.like(bindparam(PROJECT), escape=ESCAPE))
    index = f"{rows.name}_fts"
    matching = literal_column(index).op("MATCH")(bindparam(TRIGRAMS))
    matches = select(column("rowid", Integer)).select_from(table(index)).where(matching)
    # The `+` keeps SQLite from walking through the whole project for a few rows.
    own = literal_column(f"+{rows.name}.project_id", rows.c.project_id.type) == bindparam("project")
    return and_(rows.c.number.in_(matches), own)


def _pattern(text: str) -> str:
    for special in (ESCAPE, "%", "_"):
        text = text.replace(special, ESCAPE + special)
    return f"%{text}%"


def _trigrams(listing: Listing, project: str, filters: Mapping[str, str]) -> str:
    """What a row with these texts must have: as few trigrams as cover each of them."""
    terms = [f"{{{PROJECT}}} : {_quote(project[-TRIGRAM:])}"]
    for name, one in filters.items():
        starts = {*range(0, len(one) - TRIGRAM, TRIGRAM), len(one) - TRIGRAM}
        together = " AND ".join(_quote(one[start : start + TRIGRAM]) for start in sorted(starts))
        terms.append(f"{{{' '.join(listing.texts[name])}}} : ({together})")
    return " AND ".join(terms)


def _quote(trigram: str) -> str:
    doubled = trigram.replace('"', '""')
    return f'"{doubled}"'
