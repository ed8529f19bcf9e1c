"""Content in the gate's database, read on connections that refuse writes."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, false, func, or_, select
from sqlalchemy.exc import DBAPIError

from toolgate.db.content_tables import blocks, entities, performance, projects, relations
from toolgate.db.engine import Database
from toolgate.ports.content import (
    BlockFilter,
    EntityFilter,
    Found,
    Page,
    PerformanceFilter,
    Row,
    folded,
)
from toolgate.ports.documents import StoreUnavailable

T = TypeVar("T")
Condition = ColumnElement[bool]
HIDDEN = "_folded"
SHORT = ("id", "entity_type", "title", "slug", "status")
END = {"from": entities.alias("from_end"), "to": entities.alias("to_end")}


class SqlContent:
    """Reads content from the tables of pack `content`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def projects(self, page: Page) -> Found:
        """Projects by slug, then id."""
        order = (projects.c.slug, projects.c.id)
        return await self._read(lambda c: _page(c, projects, [], order, page))

    async def project_id(self, slug: str) -> str | None:
        """The id of the project with this slug."""
        wanted = select(projects.c.id).where(projects.c.slug == slug)
        return await self._read(lambda c: c.execute(wanted).scalar_one_or_none())

    async def entities(self, project: str, wanted: EntityFilter, page: Page) -> Found | None:
        """Entities, newest first."""
        c = entities.c
        conditions = _equal(
            {
                c.entity_type: wanted.entity_type,
                c.status: wanted.status,
                c.concept_kind: wanted.concept_kind,
            }
        )
        if wanted.search:
            in_title = self._contains(c.title_folded, wanted.search)
            conditions.append(or_(in_title, self._contains(c.slug_folded, wanted.search)))
        order = (c.created_at.desc(), c.id.desc())
        return await self._in_project(project, entities, conditions, order, page)

    async def entity(self, project: str, entity: str) -> Row | None:
        """One entity of this project."""
        wanted = _columns(entities).where(entities.c.project_id == project, entities.c.id == entity)
        return await self._read(lambda c: _first(c, wanted))

    async def edges(
        self, project: str, entities: Sequence[str], types: Sequence[str]
    ) -> Sequence[Row]:
        """Relations that touch any of these ids, newest first."""
        c = relations.c
        wanted = _edges().where(
            c.project_id == project, or_(c.from_id.in_(entities), c.to_id.in_(entities))
        )
        if types:
            wanted = wanted.where(c.relation_type.in_(types))
        wanted = wanted.order_by(c.created_at.desc(), c.id.desc())
        return await self._read(
            lambda conn: [_edge(row) for row in conn.execute(wanted).mappings()]
        )

    async def performance(
        self, project: str, wanted: PerformanceFilter, page: Page
    ) -> Found | None:
        """Search performance by date, query, page and id."""
        c = performance.c
        conditions = _equal({c.entity_id: wanted.entity_id})
        if wanted.query:
            conditions.append(self._contains(c.query_folded, wanted.query))
        if wanted.page_url:
            conditions.append(self._contains(c.page_url_folded, wanted.page_url))
        if wanted.date_start:
            conditions.append(c.date_start >= wanted.date_start)
        if wanted.date_end:
            conditions.append(c.date_end <= wanted.date_end)
        order = (c.date_start.desc(), c.date_end.desc(), c.query, c.page_url, c.id.desc())
        return await self._in_project(project, performance, conditions, order, page)

    async def blocks(self, project: str, wanted: BlockFilter, page: Page) -> Found | None:
        """Quotable blocks, newest first."""
        c = blocks.c
        conditions = _equal({c.entity_id: wanted.entity_id, c.claim_type: wanted.claim_type})
        if wanted.topic_tag:
            conditions.append(self._contains(c.topic_tag_folded, wanted.topic_tag))
        if wanted.verified_before:
            conditions.append(c.verified_until <= wanted.verified_before)
        if wanted.verified_after:
            conditions.append(c.verified_until >= wanted.verified_after)
        order = (c.created_at.desc(), c.id.desc())
        return await self._in_project(project, blocks, conditions, order, page)

    async def _in_project(
        self, project: str, table: Table, conditions: list[Condition], order: Any, page: Page
    ) -> Found | None:
        def look(connection: Connection) -> Found | None:
            known = select(projects.c.id).where(projects.c.id == project)
            if connection.execute(known).first() is None:
                return None
            own = table.c.project_id == project
            return _page(connection, table, [own, *conditions], order, page)

        return await self._read(look)

    async def _read(self, look: Callable[[Connection], T]) -> T:
        try:
            return await self._database.read(look)
        except (DBAPIError, OSError) as problem:
            raise StoreUnavailable(
                "The content store does not answer. Try again later."
            ) from problem

    def _contains(self, column: ColumnElement[str], text: str) -> Condition:
        """Exact substring search: no character of the text is a wildcard."""
        if "\0" in text:  # PostgreSQL neither stores it nor takes it
            return false()
        find = func.instr if self._database.dialect == "sqlite" else func.strpos
        return find(column, folded(text)) > 0


def _page(
    connection: Connection, table: Table, conditions: list[Condition], order: Any, page: Page
) -> Found:
    total = connection.scalar(select(func.count()).select_from(table).where(*conditions)) or 0
    wanted = _columns(table).where(*conditions).order_by(*order)
    shown = wanted.limit(page.limit).offset((page.number - 1) * page.limit)
    return Found([_named(row) for row in connection.execute(shown).mappings()], total)


def _columns(table: Table) -> Select[Any, Any, Any]:
    return select(*(column for column in table.c if not column.name.endswith(HIDDEN)))


def _equal(wanted: dict[Any, str | None]) -> list[Condition]:
    return [column == value for column, value in wanted.items() if value is not None]


def _edges() -> Select[Any, Any, Any]:
    shown = ("id", "relation_type", "from_id", "to_id", "notes", "created_at")
    ends = [
        table.c[name].label(f"{end}_end_{name}") for end, table in END.items() for name in SHORT
    ]
    joined = relations
    for end, table in END.items():
        mine = (table.c.id == relations.c[f"{end}_entity"]) & (
            table.c.project_id == relations.c.project_id
        )
        joined = joined.outerjoin(table, mine)
    return select(*(relations.c[name] for name in shown), *ends).select_from(joined)


def _edge(row: Any) -> Row:
    edge = {_camel(name): row[name] for name in ("id", "relation_type", "notes", "created_at")}
    edge |= {"fromEntityId": row["from_id"], "toEntityId": row["to_id"]}
    for end in END:
        here = {_camel(name): row[f"{end}_end_{name}"] for name in SHORT}
        edge[end] = here if here["id"] is not None else None
    return edge


def _first(connection: Connection, wanted: Select[Any, Any, Any]) -> Row | None:
    row = connection.execute(wanted).mappings().first()
    return None if row is None else _named(row)


def _named(row: Any) -> Row:
    return {_camel(name): value for name, value in row.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
