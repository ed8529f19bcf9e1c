"""Projects: those of the caller's user, and no others."""

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output
from toolgate.packs.orchestrator.access import viewer_of
from toolgate.packs.orchestrator.pack import MAX_ID, ORCHESTRATOR, NextCursor, Paged, ProjectId
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.denied_projects import find_denied
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("projects", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
NOT_FOUND = "Project not found"
LISTING = "db.project.list"
READING = ("db.project.get", LISTING)
Text = Annotated[str, Field(min_length=1, max_length=MAX_ID)]


class Which(Input):
    """Which project."""

    project_id: ProjectId | None = Field(
        default=None, description="The project's id, a UUID; not with slug."
    )
    slug: Text | None = Field(default=None, description="Its slug; not with project_id.")

    @model_validator(mode="after")
    def _one(self) -> "Which":
        if (self.project_id is None) == (self.slug is None):
            kind = TOLD_MISSING if self.slug is None else TOLD
            raise PydanticCustomError(kind, "exactly one of project_id and slug must be given")
        return self


class Listed(Paged):
    """Which projects."""

    q: Text | None = Field(
        default=None, description="Only with this text in slug, name or description."
    )


class Project(Output):
    """A project."""

    id: str = Field(description="The project's id.")
    slug: str = Field(description="Its name in URLs.")
    display_name: str = Field(description="Its name.")
    description: str | None = Field(description="What it is about.")
    is_active: bool = Field(description="Whether work goes on.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")


class Projects(Output):
    """A page of projects."""

    entries: list[Project] = Field(description="The projects, by slug.")
    next_cursor: NextCursor = ""


@family.tool(
    "db.project.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a project",
    not_found=NOT_FOUND,
    example={"slug": "website"},
)
async def get(ctx: Ctx, args: Which) -> Project:
    """Read one of the user's projects, by its id or its slug: give exactly one of the two.

    A user's projects are the default one and those that the user, or a group of the user, has a
    role in.
    """
    viewer = viewer_of(ctx.principal)
    found = await ctx.world.work.project(viewer, args.project_id, args.slug)
    if found is None:
        raise NotFound(NOT_FOUND)
    return _project(found)


@family.tool(
    "db.project.list", role=Role.ADMIN, effect=Effect.READ, title="List the user's projects"
)
async def list_(ctx: Ctx, args: Listed) -> Projects:
    """List the user's projects by slug, page by page; none that access rules deny reading."""
    viewer = viewer_of(ctx.principal)
    listing = (LISTING, *viewer.reach, args.q)
    after = key_before(ctx.world, listing, args.cursor)
    denied = await find_denied(ctx, viewer, args, READING, "slug")
    found = await ctx.world.work.projects(viewer, args.q, after, args.limit, denied=denied)
    entries = [_project(row) for row in found.rows]
    last = [entries[-1].slug] if found.more else None
    return Projects(entries=entries, **next_cursor(ctx.world, listing, last))


def _project(row: Row) -> Project:
    return Project(**{name: row[name] for name in Project.model_fields})
