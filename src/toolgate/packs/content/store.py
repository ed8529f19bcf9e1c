"""Published content of projects, to be read only.

Every list has a total order that filters do not change. What lies in another project does not
exist. Rows are dictionaries under the names that go over the wire.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.packs.content.vocabulary import (
    RELATION_TYPES,
    ClaimType,
    ConceptKind,
    Difficulty,
    EntityType,
    Status,
    fold,
)

__all__ = [
    "RELATION_TYPES",
    "BlockFilter",
    "ClaimType",
    "ConceptKind",
    "ContentStore",
    "Difficulty",
    "EntityFilter",
    "EntityType",
    "Graph",
    "Page",
    "PerformanceFilter",
    "Row",
    "RowPage",
    "Status",
    "fold",
]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list; pages begin at 1."""

    number: int
    limit: int


@dataclass(frozen=True, slots=True)
class RowPage:
    """One page of a list, and how long the whole list is."""

    rows: Sequence[Row]
    total: int


@dataclass(frozen=True, slots=True)
class Graph:
    """An entity, the relations it has, then those of its neighbours; newest first in each part.

    Each relation has `relatedEntity`, in short: the end farther from the root; where both are as
    far, the one it points to; None when that is no entity, or the same as the other end.
    """

    root: Row
    edges: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFilter:
    """Which entities; None means any."""

    entity_type: str | None = None
    status: str | None = None
    concept_kind: str | None = None
    search: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceFilter:
    """Which search performance rows; None means any."""

    query: str | None = None
    page_url: str | None = None
    entity_id: str | None = None
    date_start: str | None = None
    date_end: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFilter:
    """Which quotable blocks; None means any."""

    entity_id: str | None = None
    claim_type: str | None = None
    topic_tag: str | None = None
    verified_before: str | None = None
    verified_after: str | None = None


class ContentStore(Protocol):
    """Reads content; raises `StoreUnavailable` when the store does not answer."""

    async def projects(self, page: Page) -> RowPage:
        """Projects by slug, then id."""
        ...

    async def project_id(self, slug: str) -> str | None:
        """The id of the project with this slug."""
        ...

    async def entities(self, project: str, filters: EntityFilter, page: Page) -> RowPage | None:
        """Entities, newest first; None when there is no such project."""
        ...

    async def entity(self, project: str, entity: str) -> Row | None:
        """One entity of this project."""
        ...

    async def graph(
        self, project: str, entity: str, depth: int, types: Sequence[str]
    ) -> Graph | None:
        """An entity of this project and what is one or two steps away.

        All types of relations when none is named.
        """
        ...

    async def performance(
        self, project: str, filters: PerformanceFilter, page: Page
    ) -> RowPage | None:
        """Search performance by date, query, page and id; None when there is no such project."""
        ...

    async def blocks(self, project: str, filters: BlockFilter, page: Page) -> RowPage | None:
        """Quotable blocks, newest first; None when there is no such project."""
        ...
