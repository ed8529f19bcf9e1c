"""Projects, and who has a role in them."""

import uuid
from typing import Any, Literal

from pydantic import Field

from toolgate.gate.errors import Conflict, InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.administration import Kind
from toolgate.packs.orchestrator.folding import folded
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, Uuid
from toolgate.packs.orchestrator.tools.kept_values import check_kept
from toolgate.packs.orchestrator.tools.operator.lists import (
    Ctx,
    Handle,
    Name,
    Removed,
    Text,
    is_known,
    known,
    listed,
    needed,
    shown,
)
from toolgate.packs.orchestrator.tools.operator.scopes import clear_scope
from toolgate.packs.orchestrator.tools.projects import Project, Projects
from toolgate.packs.orchestrator.vocabulary import MemberRole

family = Family("operator_projects", ORCHESTRATOR)

PROJECT = "00000000-0000-4000-8000-0000000000a1"


class NewProject(Input):
    """A project to be created."""

    slug: Handle = Field(description="Its name in URLs.")
    display_name: Name = Field(description="Its name.")
    description: Text | None = Field(default=None, description="What it is about.")


class ProjectChange(Input):
    """What is changed; what is left out stays."""

    project_id: Uuid = Field(description="The project's id.")
    display_name: Name | None = Field(default=None, description="Its name.")
    description: Text | None = Field(default=None, description="What it is about.")
    is_active: bool | None = Field(default=None, description="Whether work goes on.")


class ByProject(Input):
    """Which project."""

    project_id: Uuid = Field(description="The project's id.")


class Holder(Input):
    """Who has a role in which project."""

    project_id: Uuid = Field(description="The project's id.")
    subject_type: Literal["user", "group"] = Field(description="Whether it is a user or a group.")
    subject_id: Handle = Field(description="The id of the user or group.")


class Assignment(Holder):
    """Who gets which role."""

    role: MemberRole = Field(
        description="The role: a viewer only reads what the project has, all others change it."
    )


class BindingsListed(Paged):
    """Which roles."""

    project_id: Uuid | None = Field(default=None, description="In this project only.")
    subject_id: Handle | None = Field(default=None, description="Of this user or group only.")


class Binding(Output):
    """A role in a project."""

    project_id: str = Field(description="The project's id.")
    subject_type: str = Field(description="`user` or `group`.")
    subject_id: str = Field(description="The id of the user or group.")
    role: MemberRole = Field(description="The role.")


class Bindings(Output):
    """A page of roles."""

    entries: list[Binding] = Field(description="By subject and project.")
    next_cursor: NextCursor = ""


@family.tool(
    "operator.project.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a project",
    example={"slug": "newsletter", "display_name": "Newsletter"},
)
async def create(ctx: Ctx, args: NewProject) -> Project:
    """Create a project. Nobody has a role in it yet: `operator.role_binding.set` gives one."""
    await check_kept(ctx.principal.id, display_name=args.display_name, description=args.description)
    project = await ctx.world.administration.create(
        ctx.tx,
        "project",
        {
            **args.model_dump(),
            "id": str(uuid.uuid4()),
            "folded": _folded(args.slug, args.display_name, args.description),
            "is_active": True,
        },
    )
    if project is None:
        raise Conflict(f"There is a project {args.slug!r} already.")
    return shown(Project, project)


@family.tool(
    "operator.project.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Update a project",
    example={"project_id": PROJECT, "is_active": True},
)
async def update(ctx: Ctx, args: ProjectChange) -> Project:
    """Change a project; what is left out stays as it is. The slug never changes."""
    values: dict[str, Any] = args.model_dump(exclude_unset=True, exclude={"project_id"})
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        message = "one of display_name, description and is_active must be given"
        raise InvalidArguments([Problem("arguments", "missing", message)])
    await check_kept(ctx.principal.id, display_name=args.display_name, description=args.description)
    new = {**await needed(ctx, "project", id=args.project_id), **values}
    values["folded"] = _folded(new["slug"], new["display_name"], new["description"])
    key = {"id": args.project_id}
    changed = await ctx.world.administration.update(ctx.tx, "project", key, values)
    return shown(Project, changed or new)


@family.tool(
    "operator.project.list", role=Role.ADMIN, effect=Effect.READ, title="List projects of tasks"
)
async def list_(ctx: Ctx, args: Paged) -> Projects:
    """List all projects, by slug."""
    rows, more = await listed(ctx, "project", args, {})
    return Projects(entries=[shown(Project, row) for row in rows], **more)


@family.tool(
    "operator.project.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a project",
    example={"project_id": PROJECT},
)
async def delete(ctx: Ctx, args: ByProject) -> Removed:
    """Delete a project that has no tasks and no roles any more; one with tasks is made inactive.

    Its preferences, the skills that are for it and the access rules about it go too. History and
    versions stay.
    """
    if not await ctx.world.administration.delete(ctx.tx, "project", {"id": args.project_id}):
        raise NotFound(f"There is no project {args.project_id!r}.")
    await clear_scope(ctx, "project", args.project_id)
    return Removed()


@family.tool(
    "operator.role_binding.set",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Give a role in a project",
    example={
        "project_id": PROJECT,
        "subject_type": "user",
        "subject_id": "bob",
        "role": "member",
    },
)
async def set_binding(ctx: Ctx, args: Assignment) -> Binding:
    """Give a user or a group a role in a project, in place of the one it had."""
    await needed(ctx, "project", id=args.project_id)
    await needed(ctx, args.subject_type, id=args.subject_id)
    row = args.model_dump()
    key = {name: value for name, value in row.items() if name != "role"}
    store = ctx.world.administration
    if await store.create(ctx.tx, "role_binding", row) is None:
        await store.update(ctx.tx, "role_binding", key, {"role": args.role})
    await ctx.world.access_rules.changed(ctx.tx)
    return shown(Binding, row)


@family.tool(
    "operator.role_binding.remove",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Take a role in a project away",
    example={"project_id": PROJECT, "subject_type": "group", "subject_id": "designers"},
)
async def remove_binding(ctx: Ctx, args: Holder) -> Removed:
    """Take the role of a user or group in a project away; agents that work for it lose it too."""
    if not await ctx.world.administration.delete(ctx.tx, "role_binding", args.model_dump()):
        raise NotFound(f"{args.subject_id!r} has no role in project {args.project_id!r}.")
    await ctx.world.access_rules.changed(ctx.tx)
    return Removed()


@family.tool("operator.role_binding.list", role=Role.ADMIN, effect=Effect.READ, title="List roles")
async def list_bindings(ctx: Ctx, args: BindingsListed) -> Bindings:
    """List who has which role in which project."""
    await known(ctx, "project", args.project_id)
    subject = args.subject_id
    kinds: tuple[Kind, ...] = ("user", "group")
    if subject is not None and not any([await is_known(ctx, kind, subject) for kind in kinds]):
        raise NotFound(f"There is no user or group {subject!r}.")
    where = {"project_id": args.project_id, "subject_id": args.subject_id}
    rows, more = await listed(ctx, "role_binding", args, where)
    return Bindings(entries=[shown(Binding, row) for row in rows], **more)


def _folded(slug: str, name: str, description: str | None) -> str:
    """Slug, name and description as searches compare them."""
    return folded(f"{slug}\n{name}\n{description or ''}")
