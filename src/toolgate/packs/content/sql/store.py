"""Content in the gate's database, read on connections that refuse writes."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TypeVar

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.exc import DBAPIError

from toolgate.db.engine import Database
from toolgate.packs.content.sql.graph import edges_around
from toolgate.packs.content.sql.lists import BLOCKS, ENTITIES, PERFORMANCE, PROJECTS, Listing
from toolgate.packs.content.sql.pages import one_of_project, page_of_all, page_of_project
from toolgate.packs.content.sql.tables import entities, projects
from toolgate.packs.content.store import (
    BlockFilter,
    EntityFilter,
    Graph,
    Page,
    PerformanceFilter,
    Row,
    RowPage,
)
from toolgate.ports.documents import StoreUnavailable

T = TypeVar("T")
Filter = EntityFilter | PerformanceFilter | BlockFilter
ID_OF = select(projects.c.id).where(projects.c.slug == bindparam("slug"))


class SqlContent:
    """Reads content from the tables of pack `content`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def projects(self, page: Page) -> RowPage:
        """Projects by slug, then id."""
        return await self._read(lambda connection: page_of_all(connection, PROJECTS, page))

    async def project_id(self, slug: str) -> str | None:
        """The id of the project with this slug."""
        return await self._read(lambda connection: connection.scalar(ID_OF, {"slug": slug}))

    async def entities(self, project: str, filters: EntityFilter, page: Page) -> RowPage | None:
        """Entities, newest first."""
        return await self._page(project, ENTITIES, filters, page)

    async def entity(self, project: str, entity: str) -> Row | None:
        """One entity of this project."""
        return await self._read(
            lambda connection: one_of_project(connection, entities, project, entity)
        )

    async def graph(
        self, project: str, entity: str, depth: int, types: Sequence[str]
    ) -> Graph | None:
        """An entity and the relations around it, in two statements."""

        def look(connection: Connection) -> Graph | None:
            root = one_of_project(connection, entities, project, entity)
            if root is None:
                return None
            return Graph(root, edges_around(connection, project, entity, depth, types))

        return await self._read(look)

    async def performance(
        self, project: str, filters: PerformanceFilter, page: Page
    ) -> RowPage | None:
        """Search performance by date, query, page and id."""
        return await self._page(project, PERFORMANCE, filters, page)

    async def blocks(self, project: str, filters: BlockFilter, page: Page) -> RowPage | None:
        """Quotable blocks, newest first."""
        return await self._page(project, BLOCKS, filters, page)

    async def _page(
        self, project: str, listing: Listing, filters: Filter, page: Page
    ) -> RowPage | None:
        values = {one.name: getattr(filters, one.name) for one in fields(filters)}
        narrow = {name: value for name, value in values.items() if value is not None}
        return await self._read(
            lambda connection: page_of_project(connection, listing, project, narrow, page)
        )

    async def _read(self, look: Callable[[Connection], T]) -> T:
        try:
            return await self._database.read(look, quick=True)
        except (DBAPIError, OSError) as problem:
            raise StoreUnavailable(
                "The content store does not answer. Try again later."
            ) from problem
