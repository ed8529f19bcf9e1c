"""One page of a list and the list's length, in one statement: both tell of the same moment.

Statements are built once for each set of filters; building one costs more than running it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, Subquery, Table, bindparam, func, select, true

from toolgate.adapters.sql.content_lists import Condition, Listing
from toolgate.adapters.sql.content_search import contains, listed, search
from toolgate.db.content_tables import projects, totals
from toolgate.ports.content import Found, Page, Row

HIDDEN = "_folded"
STATEMENTS = 1000


def page_of_all(connection: Connection, listing: Listing, page: Page) -> Found:
    """A page of a list that belongs to no project."""
    found = _found(connection, listing, _of_all(listing), _place(page))
    assert found is not None  # a count is always there
    return found


def page_of_project(
    connection: Connection, listing: Listing, project: str, wanted: Mapping[str, str], page: Page
) -> Found | None:
    """A page of a project's list; None when there is no such project."""
    values: dict[str, Any] = {"project": project} | _place(page)
    narrow = {name: one for name, one in wanted.items() if name in listing.conditions}
    texts = {name: one for name, one in wanted.items() if name in listing.texts}
    if not texts:
        statement = _of_project(connection.dialect.name, listing, tuple(narrow), (), False)
        return _found(connection, listing, statement, values | narrow)
    found = search(connection, listing, project, texts)
    if found.nothing:
        statement = _of_project(connection.dialect.name, listing, (), (), False)
        nobody = _found(connection, listing, statement, values)
        return nobody and Found([], 0)
    statement = _of_project(
        connection.dialect.name, listing, tuple(narrow), found.texts, found.listed
    )
    return _found(connection, listing, statement, values | narrow | found.values)


def _place(page: Page) -> dict[str, int]:
    return {"most": page.limit, "skipped": (page.number - 1) * page.limit}


@lru_cache(STATEMENTS)
def _of_all(listing: Listing) -> Select[Any]:
    total = select(func.count().label("total")).select_from(listing.table).subquery("known")
    return _page(listing, total, [])


@lru_cache(STATEMENTS)
def _of_project(
    dialect: str,
    listing: Listing,
    narrow: tuple[str, ...],
    texts: tuple[str, ...],
    by_number: bool,
) -> Select[Any]:
    table = listing.table
    own = listed(listing) if by_number else (table.c.project_id == bindparam("project"),)
    conditions = [
        *own,
        *(listing.conditions[name] for name in narrow),
        *(contains(dialect, listing, name) for name in texts),
    ]
    if narrow or texts or by_number:
        total: Any = select(func.count()).select_from(table).where(*conditions).scalar_subquery()
    else:
        kept = (totals.c.project_id == bindparam("project")) & (totals.c.list == table.name)
        total = func.coalesce(select(totals.c.total).where(kept).scalar_subquery(), 0)
    known = select(total.label("total")).where(projects.c.id == bindparam("project"))
    return _page(listing, known.subquery("known"), conditions)


def _page(listing: Listing, known: Subquery, conditions: list[Condition]) -> Select[Any]:
    """The rows are looked up by the ids of the page: what is skipped is read in the index only."""
    table = listing.table
    ids = select(table.c.id).where(*conditions).order_by(*listing.order)
    page = ids.limit(bindparam("most")).offset(bindparam("skipped")).subquery("page")
    joined = known.outerjoin(page, true()).outerjoin(table, table.c.id == page.c.id)
    chosen: Any = select(known.c.total, *_shown(table)).select_from(joined)
    return chosen.order_by(*listing.order)


def _found(
    connection: Connection, listing: Listing, statement: Select[Any], values: dict[str, Any]
) -> Found | None:
    rows: Sequence[Any] = connection.execute(statement, values).all()
    if not rows:
        return None
    names = _names(listing.table)
    shown = [dict(zip(names, row[1:], strict=True)) for row in rows if row[1] is not None]
    return Found(shown, rows[0][0])


@lru_cache(STATEMENTS)
def _one(table: Table) -> Select[Any]:
    own = table.c.project_id == bindparam("project")
    chosen: Any = select(*_shown(table))
    return chosen.where(own, table.c.id == bindparam("id"))


def one_of_project(connection: Connection, table: Table, project: str, id: str) -> Row | None:
    """The project's row with this id."""
    row = connection.execute(_one(table), {"project": project, "id": id}).first()
    return None if row is None else dict(zip(_names(table), row, strict=True))


def _shown(table: Table) -> list[Any]:
    """The columns that go over the wire, the id first."""
    return [one for one in table.c if one.name != "number" and not one.name.endswith(HIDDEN)]


@lru_cache(STATEMENTS)
def _names(table: Table) -> list[str]:
    return [camel(column.name) for column in _shown(table)]


def camel(name: str) -> str:
    """The column's name on the wire."""
    head, *others = name.split("_")
    return head + "".join(part.capitalize() for part in others)
