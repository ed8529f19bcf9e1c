"""How pages did in Google's search."""

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from toolgate.gate.arguments import TOLD
from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Route, StoredOutput
from toolgate.packs.content.pack import (
    CONTENT,
    DATES,
    InProject,
    Moment,
    Paged,
    Pagination,
    Substring,
    Uuid,
    page_output,
    require_project,
)
from toolgate.packs.content.store import PerformanceFilter
from toolgate.packs.content.world import ContentWorld

# Field names are the seed's own, hence in camel case.
# ruff: noqa: N815

family = Family("content", CONTENT)


class Record(Output):
    """One query on one page in one period."""

    id: str = Field(description="The record's id, a UUID.")
    projectId: str = Field(description="The project it belongs to.")
    entityId: str | None = Field(description="The entity behind the page, where one is.")
    pageUrl: str = Field(description="The page that was shown.")
    query: str = Field(description="What people searched for.")
    impressions: int = Field(description="How often the page was shown.")
    clicks: int = Field(description="How often it was clicked.")
    ctr: float = Field(description="Clicks as a share of impressions, 0 to 1.")
    avgPosition: float = Field(description="Average place among the results.")
    dateStart: str = Field(description="First day, ISO 8601.")
    dateEnd: str = Field(description="Last day, ISO 8601.")
    capturedAt: str = Field(description="When the figures were taken, ISO 8601.")


class Records(StoredOutput):
    """A page of records."""

    data: list[Record] = Field(description="The records, latest period first.")
    pagination: Pagination = Field(description="Where in the list this page is.")


class PerformanceQuery(InProject, Paged):
    """Which records."""

    query: Substring = Field(default=None, description="Only queries with this text.")
    pageUrl: Substring = Field(default=None, description="Only pages with this text in the URL.")
    entityId: Uuid | None = Field(default=None, description="Only of this entity.")
    dateStart: Moment | None = Field(
        default=None,
        description=f"Only periods that begin then or later: {DATES}.",
    )
    dateEnd: Moment | None = Field(
        default=None,
        description=f"Only periods that end then or earlier: {DATES}.",
    )

    @field_validator("dateEnd")
    @classmethod
    def _not_before_start(cls, end: str | None, info: ValidationInfo) -> str | None:
        start = info.data.get("dateStart")
        if end is not None and start is not None and start > end:
            raise PydanticCustomError(TOLD, "dateStart must be <= dateEnd")
        return end


@family.tool(
    "list_search_performance",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List search performance",
    route=Route("/api/seo/search-performance"),
    example={"projectId": "00000000-0000-4000-a000-000000000001", "query": "rag"},
)
async def list_search_performance(ctx: Context[ContentWorld], args: PerformanceQuery) -> Records:
    """List a project's figures from Google Search Console, latest period first.

    Google's figures arrive about three days late.
    """
    filters = PerformanceFilter(
        query=args.query,
        page_url=args.pageUrl,
        entity_id=args.entityId,
        date_start=args.dateStart,
        date_end=args.dateEnd,
    )
    page = require_project(
        await ctx.world.store.performance(args.projectId, filters, args.requested_page)
    )
    return page_output(Records, args, page)
