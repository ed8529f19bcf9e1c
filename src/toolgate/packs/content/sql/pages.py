"""One page of a list and the list's length, in one statement: both tell of the same moment.

Statements are built once for each set of filters; building one costs more than running it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Subquery,
    Table,
    bindparam,
    cast,
    false,
    func,
    select,
    true,
)

from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions
from toolgate.packs.content.sql.lists import Condition, Listing
from toolgate.packs.content.sql.search import Search, contains, of_project, search
from toolgate.packs.content.sql.tables import projects, totals
from toolgate.packs.content.store import Page, Row, RowPage

HIDDEN = "_folded"
STATEMENTS = 1000


def page_of_all(listing: Listing, page: Page) -> Questions[RowPage]:
    """A page of a list that belongs to no project."""
    result = yield from _ask(listing, _of_all(listing), _place(page))
    assert result is not None  # a count is always there
    return result


def page_of_project(
    dialect: str, listing: Listing, project: str, filters: Mapping[str, str], page: Page
) -> Questions[RowPage | None]:
    """A page of a project's list; None when there is no such project."""
    values: dict[str, Any] = {"project": project} | _place(page)
    if not filters:
        return (yield from _ask(listing, _of_project(listing, page.number > 1), values))
    narrow = {name: one for name, one in filters.items() if name in listing.conditions}
    texts = {name: one for name, one in filters.items() if name in listing.texts}
    matching = search(dialect, listing, project, texts) if texts else Search({})
    shape = Narrowing(tuple(narrow), tuple(texts), matching.indexed, matching.values is None)
    statement = _of_filters(dialect, listing, shape)
    return (yield from _ask(listing, statement, values | narrow | (matching.values or {})))


class Narrowing(NamedTuple):
    """What narrows a list: one statement serves all that are narrowed alike."""

    conditions: tuple[str, ...]
    texts: tuple[str, ...]
    indexed: bool
    nothing: bool


def _place(page: Page) -> dict[str, int]:
    return {"most": page.limit, "skipped": (page.number - 1) * page.limit}


@lru_cache
def _of_all(listing: Listing) -> PreparedStatement:
    total = select(func.count().label("total")).select_from(listing.table).subquery("known")
    return _page(listing, total, [], bindparam("skipped"))


@lru_cache
def _of_project(listing: Listing, late: bool) -> PreparedStatement:
    """A page of the whole list. A late one begins on the day that the kept totals tell."""
    t = totals.c
    own_totals = (t.project_id == bindparam("project")) & (t.list == listing.table.name)
    total = select(func.coalesce(func.sum(t.total), 0)).where(own_totals).scalar_subquery()
    own = [listing.table.c.project_id == bindparam("project")]
    if not late:
        return _page(listing, _length(total), own, bindparam("skipped"))
    # Days differ, so counting rows is the same as counting values, and costs less.
    through = func.sum(t.total).over(order_by=t.day.desc(), rows=(None, 0)).label("through")
    days = select(t.day, t.total, through).where(own_totals).subquery("days")
    first = select(days.c.day, (days.c.through - days.c.total).label("before"))
    first = first.where(days.c.through > bindparam("skipped")).order_by(days.c.day.desc())
    day = first.limit(1).cte("first_day")
    # A moment is its day, a T and more.
    until = select(day.c.day.concat("Z")).scalar_subquery()
    before = select(day.c.before).scalar_subquery()
    skipped = cast(bindparam("skipped"), BigInteger) - func.coalesce(before, 0)
    return _page(listing, _length(total), [*own, listing.dated < until], skipped)


@lru_cache(STATEMENTS)
def _of_filters(dialect: str, listing: Listing, narrow: Narrowing) -> PreparedStatement:
    table = listing.table
    conditions = [
        of_project(dialect, listing, indexed=narrow.indexed),
        *(listing.conditions[name] for name in narrow.conditions),
    ]
    if narrow.nothing:
        conditions.append(false())
    else:
        conditions += [contains(dialect, listing, name) for name in narrow.texts]
    if not narrow.texts:
        total = select(func.count()).select_from(table).where(*conditions).scalar_subquery()
        return _page(listing, _length(total), conditions, bindparam("skipped"))
    # Searching is dear: what it finds is kept, to be counted and to be shown from.
    keys = [table.c[name.removeprefix("-")] for name in listing.order]
    matching = select(*keys).where(*conditions).cte("matching")
    total = select(func.count()).select_from(matching).scalar_subquery()
    ids: Any = select(matching.c.id).order_by(*listing.order_by(matching))
    return _rows(listing, _length(total), ids, bindparam("skipped"))


def _length(total: Any) -> Subquery:
    """The list's length, if there is such a project."""
    own = projects.c.id == bindparam("project")
    return select(total.label("total")).where(own).subquery("known")


def _page(
    listing: Listing, length: Subquery, conditions: list[Condition], skipped: Any
) -> PreparedStatement:
    table = listing.table
    ids: Any = select(table.c.id).where(*conditions).order_by(*listing.order_by(table))
    return _rows(listing, length, ids, skipped)


def _rows(listing: Listing, length: Subquery, ids: Any, skipped: Any) -> PreparedStatement:
    """The rows are looked up by the ids of the page: what is skipped is read in the index only."""
    table = listing.table
    page = ids.limit(bindparam("most")).offset(skipped).subquery("page")
    joined = length.outerjoin(page, true()).outerjoin(table, table.c.id == page.c.id)
    statement: Any = select(length.c.total, *_columns(table)).select_from(joined)
    return PreparedStatement(statement.order_by(*listing.order_by(table)))


def _ask(
    listing: Listing, statement: PreparedStatement, values: dict[str, Any]
) -> Questions[RowPage | None]:
    rows = yield statement, values
    if not rows:
        return None
    names = _names(listing.table)
    page_rows = [dict(zip(names, row[1:], strict=True)) for row in rows if row[1] is not None]
    return RowPage(page_rows, int(rows[0][0]))


@lru_cache(STATEMENTS)
def _one(table: Table) -> PreparedStatement:
    own = table.c.project_id == bindparam("project")
    statement: Any = select(*_columns(table))
    return PreparedStatement(statement.where(own, table.c.id == bindparam("id")))


def one_of_project(table: Table, project: str, id: str) -> Questions[Row | None]:
    """The project's row with this id."""
    rows = yield _one(table), {"project": project, "id": id}
    return dict(zip(_names(table), rows[0], strict=True)) if rows else None


def _columns(table: Table) -> list[Any]:
    """The columns that go over the wire, the id first."""
    return [one for one in table.c if one.name != "number" and not one.name.endswith(HIDDEN)]


@lru_cache(STATEMENTS)
def _names(table: Table) -> list[str]:
    return [camel(column.name) for column in _columns(table)]


def camel(name: str) -> str:
    """The column's name on the wire."""
    head, *others = name.split("_")
    return head + "".join(part.capitalize() for part in others)
