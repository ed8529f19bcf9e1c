"""Users and groups: for whom agents work."""

import uuid

from pydantic import Field

from toolgate.gate.errors import Conflict, NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.folding import folded
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged
from toolgate.packs.orchestrator.tools.operator.lists import (
    Ctx,
    Handle,
    Name,
    Removed,
    known,
    listed,
    needed,
    shown,
)
from toolgate.packs.orchestrator.tools.operator.scopes import clear_scope

family = Family("operator_people", ORCHESTRATOR)


class NewUser(Input):
    """A user to be created."""

    user_id: Handle = Field(description="The user's id, as keys are bound to it: `--user alice`.")
    display_name: Name = Field(description="The user's name.")


class ByUser(Input):
    """Which user."""

    user_id: Handle = Field(description="The user's id.")


class NewGroup(Input):
    """A group to be created."""

    group_id: Handle = Field(description="The group's id.")
    display_name: Name = Field(description="The group's name.")


class ByGroup(Input):
    """Which group."""

    group_id: Handle = Field(description="The group's id.")


class Membership(Input):
    """A user in a group."""

    group_id: Handle = Field(description="The group's id.")
    user_id: Handle = Field(description="The user's id.")


class MembersListed(Paged):
    """Which memberships."""

    group_id: Handle | None = Field(default=None, description="Of this group only.")
    user_id: Handle | None = Field(default=None, description="Of this user only.")


class Subject(Output):
    """A user or a group."""

    id: str = Field(description="Its id.")
    display_name: str = Field(description="Its name.")
    created_at: str = Field(description="When it was created, ISO 8601.")


class Subjects(Output):
    """A page of users or groups."""

    entries: list[Subject] = Field(description="By id.")
    next_cursor: NextCursor = ""


class Member(Output):
    """A user in a group."""

    group_id: str = Field(description="The group's id.")
    user_id: str = Field(description="The user's id.")


class Members(Output):
    """A page of memberships."""

    entries: list[Member] = Field(description="By user and group.")
    next_cursor: NextCursor = ""


@family.tool(
    "operator.user.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a user",
    example={"user_id": "carol", "display_name": "Carol"},
)
async def create_user(ctx: Ctx, args: NewUser) -> Subject:
    """Create a user for whom agents can work, with a default project.

    The project's slug is `default-` and the user's id.
    """
    store = ctx.world.administration
    row = {"id": args.user_id, "display_name": args.display_name}
    user = await store.create(ctx.tx, "user", row)
    if user is None:
        raise Conflict(f"There is a user {args.user_id!r} already.")
    await clear_scope(ctx, "user", args.user_id)
    slug = f"default-{args.user_id}"
    project = {
        "id": str(uuid.uuid4()),
        "slug": slug,
        "display_name": args.display_name,
        "folded": folded(f"{slug}\n{args.display_name}\n"),
        "is_active": True,
        "default_of": args.user_id,
    }
    if await store.create(ctx.tx, "project", project) is None:
        raise Conflict(
            f"There is a project {slug!r} already, and its slug never changes. Choose another id, "
            "or delete that project with operator.project.delete."
        )
    return shown(Subject, user)


@family.tool("operator.user.list", role=Role.ADMIN, effect=Effect.READ, title="List users")
async def list_users(ctx: Ctx, args: Paged) -> Subjects:
    """List the users for whom agents work, by id."""
    rows, more = await listed(ctx, "user", args, {})
    return Subjects(entries=[shown(Subject, row) for row in rows], **more)


@family.tool(
    "operator.user.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a user",
    example={"user_id": "carol"},
)
async def delete_user(ctx: Ctx, args: ByUser) -> Removed:
    """Delete a user who has no tasks, skills, groups and roles any more.

    The user's default project goes too, with the preferences of both and the access rules about
    them, and every key of an agent that works for the user ends: a user of the same id later is
    somebody else. The history of the preferences stays.
    """
    await needed(ctx, "user", id=args.user_id)
    store = ctx.world.administration
    default = await store.find(ctx.tx, "project", {"default_of": args.user_id})
    if default is not None:
        try:
            await store.delete(ctx.tx, "project", {"id": default["id"]})
        except Conflict as used:
            message = f"User {args.user_id!r} stays, with its default project. {used.message}"
            raise Conflict(message) from None
        await clear_scope(ctx, "project", default["id"])
    await store.delete(ctx.tx, "user", {"id": args.user_id})
    await clear_scope(ctx, "user", args.user_id)
    await store.revoke_keys(ctx.tx, args.user_id)
    return Removed()


@family.tool(
    "operator.group.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a group",
    example={"group_id": "writers", "display_name": "Writers"},
)
async def create_group(ctx: Ctx, args: NewGroup) -> Subject:
    """Create a group of users."""
    row = {"id": args.group_id, "display_name": args.display_name}
    group = await ctx.world.administration.create(ctx.tx, "group", row)
    if group is None:
        raise Conflict(f"There is a group {args.group_id!r} already.")
    await clear_scope(ctx, "group", args.group_id)
    return shown(Subject, group)


@family.tool("operator.group.list", role=Role.ADMIN, effect=Effect.READ, title="List groups")
async def list_groups(ctx: Ctx, args: Paged) -> Subjects:
    """List the groups, by id."""
    rows, more = await listed(ctx, "group", args, {})
    return Subjects(entries=[shown(Subject, row) for row in rows], **more)


@family.tool(
    "operator.group.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a group",
    example={"group_id": "writers"},
)
async def delete_group(ctx: Ctx, args: ByGroup) -> Removed:
    """Delete a group that has no members and no roles any more.

    Its preferences, the skills that are for it and the access rules about it go too: a group of
    the same id later is another one. History and versions stay.
    """
    if not await ctx.world.administration.delete(ctx.tx, "group", {"id": args.group_id}):
        raise NotFound(f"There is no group {args.group_id!r}.")
    await clear_scope(ctx, "group", args.group_id)
    return Removed()


@family.tool(
    "operator.group.add_member",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Add a user to a group",
    example={"group_id": "designers", "user_id": "alice"},
)
async def add_member(ctx: Ctx, args: Membership) -> Member:
    """Add a user to a group; one who is in it already stays."""
    await needed(ctx, "user", id=args.user_id)
    await needed(ctx, "group", id=args.group_id)
    row = {"user_id": args.user_id, "group_id": args.group_id}
    await ctx.world.administration.create(ctx.tx, "member", row)
    await ctx.world.access_rules.changed(ctx.tx)
    return Member(**row)


@family.tool(
    "operator.group.remove_member",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Remove a user from a group",
    example={"group_id": "designers", "user_id": "bob"},
)
async def remove_member(ctx: Ctx, args: Membership) -> Removed:
    """Take a user out of a group; what the group gave is gone at once."""
    row = {"user_id": args.user_id, "group_id": args.group_id}
    if not await ctx.world.administration.delete(ctx.tx, "member", row):
        raise NotFound(f"{args.user_id!r} is not in group {args.group_id!r}.")
    await ctx.world.access_rules.changed(ctx.tx)
    return Removed()


@family.tool(
    "operator.group.list_members", role=Role.ADMIN, effect=Effect.READ, title="List members"
)
async def list_members(ctx: Ctx, args: MembersListed) -> Members:
    """List who is in which group."""
    await known(ctx, "group", args.group_id)
    await known(ctx, "user", args.user_id)
    where = {"group_id": args.group_id, "user_id": args.user_id}
    rows, more = await listed(ctx, "member", args, where)
    return Members(entries=[shown(Member, row) for row in rows], **more)
