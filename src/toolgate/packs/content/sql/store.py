"""Content in the gate's database, read on connections that refuse writes."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TypeVar

from sqlalchemy import bindparam, select
from sqlalchemy.exc import DBAPIError

from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions
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
ID_OF = PreparedStatement(select(projects.c.id).where(projects.c.slug == bindparam("slug")))


class SqlContent:
    """Reads content from the tables of pack `content`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def projects(self, page: Page) -> RowPage:
        """Projects by slug, then id."""
        return await self._ask(lambda: page_of_all(PROJECTS, page))

    async def project_id(self, slug: str) -> str | None:
        """The id of the project with this slug."""
        with _as_store_errors():
            row = await self._database.look_up(ID_OF, {"slug": slug}, of_data=True)
        return None if row is None else row.id

    async def entities(self, project: str, filters: EntityFilter, page: Page) -> RowPage | None:
        """Entities, newest first."""
        return await self._page(project, ENTITIES, filters, page)

    async def entity(self, project: str, entity: str) -> Row | None:
        """One entity of this project."""
        return await self._ask(lambda: one_of_project(entities, project, entity))

    async def graph(
        self, project: str, entity: str, depth: int, types: Sequence[str]
    ) -> Graph | None:
        """An entity and the relations around it, in two statements."""

        def questions() -> Questions[Graph | None]:
            root = yield from one_of_project(entities, project, entity)
            if root is None:
                return None
            return Graph(root, (yield from edges_around(project, entity, depth, types)))

        return await self._ask(questions)

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
        dialect = self._database.dialect
        return await self._ask(lambda: page_of_project(dialect, listing, project, narrow, page))

    async def _ask(self, questions: Callable[[], Questions[T]]) -> T:
        with _as_store_errors():
            return await self._database.ask(questions)


@contextmanager
def _as_store_errors() -> Generator[None, None, None]:
    try:
        yield
    except (DBAPIError, OSError) as problem:
        raise StoreUnavailable("The content store does not answer. Try again later.") from problem
