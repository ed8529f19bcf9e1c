"""Skills: instructions that agents share, looked at before anybody reads them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD
from toolgate.gate.context import Context
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    InvalidArguments,
    NotFound,
    Problem,
)
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Target
from toolgate.packs.orchestrator.access import Viewer, acting_viewer, check_within_bound, viewer_of
from toolgate.packs.orchestrator.pack import (
    ORCHESTRATOR,
    ForTaskOwner,
    Line,
    NextCursor,
    Paged,
    ScopeId,
    Uuid,
    WithoutSecret,
)
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.skills.store import (
    QUOTA,
    SYSTEM_SKILL,
    NewSkill,
    SkillChange,
)
from toolgate.packs.orchestrator.skills.system_skill import system_content, system_skill
from toolgate.packs.orchestrator.tools.denied_projects import find_denied
from toolgate.packs.orchestrator.tools.skill_quarantine import (
    is_kept_for_name,
    quarantined,
    refused_texts,
    shown_name,
)
from toolgate.packs.orchestrator.tools.skill_texts import MAX_BYTES, check_texts
from toolgate.packs.orchestrator.vocabulary import SkillScope
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("skills", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
NO_TASK, NO_SKILL = "Task not found", "Skill not found"
LISTING = "skills.list"
READING = ("skills.get", LISTING)
TASK = "00000000-0000-4000-8000-0000000000b1"
SKILL = "00000000-0000-4000-8000-0000000000d1"

Name = Annotated[Line, WithoutSecret]
Content = Annotated[str, Field(min_length=1)]
"""Its size is checked before it is examined, which takes time."""


class BySkill(ForTaskOwner):
    """Which skill."""

    skill_id: Uuid = Field(description="The skill's id, a UUID.")


class Listed(ForTaskOwner, Paged):
    """Which skills."""

    filters = frozenset({"scope", "owner"})

    scope: SkillScope | None = Field(default=None, description="Only of this scope.")
    owner: ScopeId | None = Field(default=None, description="Only of this user.")


def _check_scope_id(scope: SkillScope | None, scope_id: str | None) -> None:
    """Raise for an id that nothing could be done with."""
    if scope_id is not None and scope in (None, "global"):
        when = "scope is global" if scope else "scope is left out"
        raise PydanticCustomError(TOLD, "scope_id must be left out when {when}", {"when": when})


class Written(ForTaskOwner):
    """A skill to be stored."""

    content: Content = Field(description=f"The text, Markdown, at most {MAX_BYTES // 1024} KiB.")
    name: Name = Field(default="Untitled skill", description="Its name.")
    scope: SkillScope = Field(default="user", description="Who reads it.")
    scope_id: ScopeId | None = Field(
        default=None,
        description="The group or project; of a project, the task's if left out. Not for global.",
    )

    @model_validator(mode="after")
    def _scope(self) -> Self:
        _check_scope_id(self.scope, self.scope_id)
        return self


class Rewritten(BySkill):
    """What of a skill is changed; what is left out stays as it is."""

    content: Content | None = Field(default=None, description="The new text.")
    name: Name | None = Field(default=None, description="The new name.")
    scope: SkillScope | None = Field(default=None, description="Who reads it from now on.")
    scope_id: ScopeId | None = Field(
        default=None, description="The group or project of the new scope. Not for global."
    )

    @model_validator(mode="after")
    def _scope(self) -> Self:
        _check_scope_id(self.scope, self.scope_id)
        return self


class SkillInfo(Output):
    """A skill without its text."""

    id: str = Field(description="The skill's id.")
    name: str = Field(description="Its name.")
    scope: SkillScope = Field(description="Who reads it.")
    scope_id: str | None = Field(description="The user, group or project; null for global.")
    owner: str | None = Field(description="Whose it is; null for the system's.")
    version: int = Field(description="Grows with every change.")
    quarantined: bool = Field(description="Whether nobody reads it for now.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")


class Skill(SkillInfo):
    """A skill."""

    content: str = Field(description="The text.")


class SkillList(Output):
    """A page of skills."""

    entries: list[SkillInfo] = Field(description="The skills, the last changed first.")
    next_cursor: NextCursor = ""


class Deleted(Output):
    """The answer of a tool that has nothing to add."""


@family.tool(
    "skills.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a skill",
    not_found=NO_TASK,
    example={"task_id": TASK, "name": "Release notes", "content": "# How we write them\n…"},
    note=QUOTA,
)
async def create(ctx: Ctx, args: Written) -> SkillInfo:
    """Store a skill of your user; without one, of the task's.

    Text and name are looked at first: hidden text, orders to ignore other instructions, grabs at
    secrets and credentials are refused, and the error says what was found; so is a text that an
    operator put into quarantine. Only an admin makes a skill global.
    """
    task = await _task(ctx, args.task_id)
    owner = _acting(ctx, task).user_id
    if owner is None and not _is_admins(ctx, args.scope):
        raise _no_user(ctx)
    scope_id = await _scope_id(ctx, args.scope, args.scope_id, task)
    digest = await check_texts(ctx.principal.id, ctx.world.content_audit, args.name, args.content)
    new = NewSkill(
        name=args.name,
        content=args.content,
        digest=digest,
        scope=args.scope,
        scope_id=scope_id,
        owner_id=owner,
        by=ctx.principal.id,
        limited=Role.ADMIN not in ctx.principal.roles,
    )
    with refused_texts(tells_skill=Role.ADMIN in ctx.principal.roles):
        return _info(await ctx.world.skills.create(ctx.tx, new))


@family.tool(
    "skills.list",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List skills",
    not_found=NO_TASK,
    example={"task_id": TASK},
)
async def list_(ctx: Ctx, args: Listed) -> SkillList:
    """List the skills that your user reads, without their texts, the last changed first.

    Those of projects where access rules deny reading them are left out.
    Without a user of your own, those that the task's user reads; a key that is bound to a task and
    has no user reads those for everybody and for the task's project.
    """
    acting = _acting(ctx, await _task(ctx, args.task_id))
    listing = (LISTING, *acting.reach, args.scope, args.owner)
    position = ctx.world.cursors.read(listing, args.cursor)
    after = (position[0], position[1]) if position else None
    denied = await find_denied(ctx, acting, args, READING, "skill_id")
    page = await ctx.world.skills.page(
        acting, args.scope, args.owner, after, args.limit, denied=denied
    )
    entries = [_info(row) for row in page.rows]
    system_too = args.owner is None and args.scope in (None, "global")
    if page.more or (system_too and len(entries) == args.limit):
        last = page.rows[-1]
        cursor = ctx.world.cursors.make(listing, [last["updated_at"], last["id"]])
        return SkillList(entries=entries, next_cursor=cursor)
    if system_too:  # the oldest of all
        entries.append(SkillInfo(**system_skill()))
    return SkillList(entries=entries)


@family.tool(
    "skills.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a skill",
    not_found=NO_SKILL,
    example={"task_id": TASK, "skill_id": SYSTEM_SKILL},
)
async def get(ctx: Ctx, args: BySkill) -> Skill:
    """Read one skill that your user reads; without one, that the task's user reads."""
    task = await _task(ctx, args.task_id, NO_SKILL)
    if args.skill_id == SYSTEM_SKILL:
        return Skill(**system_skill(), content=system_content())
    row = await ctx.world.skills.get(_acting(ctx, task), args.skill_id)
    if row is None:
        raise NotFound(NO_SKILL)
    if row["quarantine"] is not None:
        raise quarantined(ctx.principal, row["quarantine"])
    return Skill(**_info(row).model_dump(), content=row["content"])


@family.tool(
    "skills.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Update a skill",
    not_found=NO_SKILL,
    example={"task_id": TASK, "skill_id": SKILL, "name": "Release notes, shorter"},
    note=QUOTA,
)
async def update(ctx: Ctx, args: Rewritten) -> SkillInfo:
    """Change a skill of your user (without one, of the task's); what is left out stays as it is.

    Text and name are looked at like new ones. Older versions are kept. Another text lifts a
    quarantine, or another name where that was why; not if an operator decided on it: that one
    stays until an operator releases it.
    """
    task, old = await _changeable(ctx, args)
    if args.content is None and args.name is None and args.scope is None:
        raise InvalidArguments(
            [Problem("arguments", "missing", "one of content, name and scope must be given")]
        )
    scope_id = None
    if args.scope is not None:
        scope_id = await _scope_id(ctx, args.scope, args.scope_id, task)
    name, content = args.name, args.content
    if is_kept_for_name(old) and name is not None and content is None:
        content = old["content"]  # it will be read again, if nothing else is the matter
    if args.content is not None:
        if old["quarantine"] is not None and args.content == old["content"]:
            raise quarantined(ctx.principal, old["quarantine"], "its text is the same as before")
        name = name or old["name"]  # it may be why it is in quarantine, by now or by then
    digest = await check_texts(ctx.principal.id, ctx.world.content_audit, name, content)
    change = SkillChange(
        name=args.name,
        content=args.content,
        digest=None if args.content is None else digest,
        scope=args.scope,
        scope_id=scope_id,
        by=ctx.principal.id,
        limited=Role.ADMIN not in ctx.principal.roles,
    )
    with refused_texts(tells_skill=Role.ADMIN in ctx.principal.roles):
        changed = await ctx.world.skills.update(ctx.tx, _acting(ctx, task), args.skill_id, change)
    if changed is None:
        raise NotFound(NO_SKILL)
    return _info(changed)


@family.tool(
    "skills.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a skill",
    not_found=NO_SKILL,
    example={"task_id": TASK, "skill_id": SKILL},
)
async def delete(ctx: Ctx, args: BySkill) -> Deleted:
    """Delete a skill of your user; without one, of the task's. Operators see its last versions."""
    task, _ = await _changeable(ctx, args)
    if await ctx.world.skills.delete(ctx.tx, _acting(ctx, task), args.skill_id) is None:
        raise NotFound(NO_SKILL)
    return Deleted()


async def _task(ctx: Ctx, task_id: str, words: str = NO_TASK) -> Row:
    task = await ctx.world.work.task(viewer_of(ctx.principal), task_id)
    if task is None:
        raise NotFound(words)
    return task


def _acting(ctx: Ctx, task: Row) -> Viewer:
    return acting_viewer(ctx.principal, task["created_by"])


async def _changeable(ctx: Ctx, args: BySkill) -> tuple[Row, Row]:
    """The task and the skill, if it is the acting user's or the caller is an admin."""
    task = await _task(ctx, args.task_id, NO_SKILL)
    if args.skill_id == SYSTEM_SKILL:
        message = "The system's own skill can be read, but not changed or deleted."
        raise Forbidden(message, rule="system-skill")
    acting = _acting(ctx, task)
    row = await ctx.world.skills.get(acting, args.skill_id)
    if row is None:
        raise NotFound(NO_SKILL)
    is_own = acting.user_id is not None and row["owner_id"] == acting.user_id
    if not is_own and Role.ADMIN not in ctx.principal.roles:
        message = "A skill can be changed by its owner or an admin only."
        raise Forbidden(message, rule="skill-owner")
    check_within_bound(ctx.principal, row["scope"])
    if row["scope"] == "project":
        await _is_in_scope(ctx, acting, "project", row["scope_id"])
    return task, row


def _is_admins(ctx: Ctx, scope: SkillScope) -> bool:
    """Whether it is a skill for everybody by an admin, which needs no owner."""
    return scope == "global" and Role.ADMIN in ctx.principal.roles


def _no_user(ctx: Ctx) -> GateError:
    """Why there is nobody whose skill it would be."""
    if ctx.principal.bound and Role.ADMIN not in ctx.principal.roles:
        message = "A skill belongs to a user, and this key has none. Use a key with --user."
        return Forbidden(message, rule="skill-owner")
    message = "task_id names a task without a user, and a skill belongs to one. Name another task"
    if Role.ADMIN in ctx.principal.roles:
        message += ", or use scope global"
    return InvalidArguments([Problem("task_id", "value", message)])


async def _scope_id(ctx: Ctx, scope: SkillScope, given: str | None, task: Row) -> str:
    """The id of whom a skill is for, checked."""
    acting = _acting(ctx, task)
    user = acting.user_id
    if scope == "global":
        if Role.ADMIN not in ctx.principal.roles:
            message = "Only an admin can make a skill global. Use scope user or project."
            raise Forbidden(message, rule="global-skill")
        return ""
    if user is None:
        raise _no_user(ctx)
    check_within_bound(ctx.principal, scope)
    if scope == "user":
        if given not in (None, user):
            raise NotFound(f"There is no user {given!r} for this call.")
        return user
    wanted = given or (task["project_id"] if scope == "project" else None)
    if wanted is None:
        raise InvalidArguments(
            [Problem("scope_id", "missing", f"scope_id is required when scope is {scope}")]
        )
    if not await _is_in_scope(ctx, acting, scope, wanted):
        raise NotFound(f"There is no {scope} {wanted!r} for user {user!r}.")
    return wanted


async def _is_in_scope(
    ctx: Ctx, acting: Viewer, scope: Literal["group", "project"], scope_id: str
) -> bool:
    """Whether a user's skills may be for a group or project; raises `Forbidden` for a reader's."""
    if Role.ADMIN in ctx.principal.roles:
        return await ctx.world.work.reaches(acting, scope, scope_id)
    return await ctx.world.work.changes(acting, scope, scope_id)


def _info(row: Row) -> SkillInfo:
    return SkillInfo(
        id=row["id"],
        name=shown_name(row),
        scope=row["scope"],
        scope_id=row["scope_id"] or None,
        owner=row["owner_id"],
        version=row["version"],
        quarantined=row.get("quarantine") is not None,
        updated_at=row["updated_at"],
    )
