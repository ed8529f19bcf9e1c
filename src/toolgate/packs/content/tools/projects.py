"""Projects."""

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Route, StoredOutput
from toolgate.packs.content.pack import CONTENT, Paged, Pagination, page_output
from toolgate.packs.content.world import ContentWorld

family = Family("content", CONTENT)


class Project(Output):
    """One project."""

    id: str = Field(description="The project's id, a UUID.")
    slug: str = Field(description="Its name in URLs.")
    name: str = Field(description="Its name.")
    description: str | None = Field(description="What it is about.")
    createdAt: str = Field(description="When it was created, ISO 8601.")  # noqa: N815 (the seed's)
    updatedAt: str = Field(description="When it was changed, ISO 8601.")  # noqa: N815


class Projects(StoredOutput):
    """A page of projects."""

    data: list[Project] = Field(description="The projects, by slug.")
    pagination: Pagination = Field(description="Where in the list this page is.")


@family.tool(
    "list_projects",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List projects",
    route=Route("/api/projects"),
)
async def list_projects(ctx: Context[ContentWorld], args: Paged) -> Projects:
    """List all projects, ordered by slug.

    Every other tool of this pack asks for the id of one of them.
    """
    page = await ctx.world.store.projects(args.requested_page)
    return page_output(Projects, args, page)
