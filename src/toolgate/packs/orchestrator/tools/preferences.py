"""Preferences: what a user, group, project or task wants, and what of it applies to a task."""

from typing import Any

from pydantic import Field

from toolgate.gate.arguments import shorten
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.access import check_within_bound, viewer_of
from toolgate.packs.orchestrator.effective import effective_of
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, ScopeId, TaskId
from toolgate.packs.orchestrator.records import (
    MAX_PREFERENCE_BYTES,
    PREFERENCE_QUOTA,
    SHARE,
    Place,
    Record,
)
from toolgate.packs.orchestrator.steering import RESERVED as STEERING
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.tools.values import (
    ByPrefix,
    Deleted,
    Expected,
    Key,
    KeyedValue,
    Nothing,
    StoredValue,
    Value,
    check_system_writable,
    check_value,
    check_writable,
)
from toolgate.packs.orchestrator.vocabulary import RESERVED_PREFERENCES, ScopeType
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("preferences", ORCHESTRATOR)

LISTING = "db.preference.list"

Ctx = Context[OrchestratorWorld]


class InScope(Input):
    """Whose preferences."""

    scope_type: ScopeType = Field(
        description="Whose: the system's, or that of a user, group, project or task."
    )
    scope_id: ScopeId | None = Field(
        default=None, description="The id of that user, group, project or task; not for system."
    )


class ByKey(InScope):
    """Which preference."""

    key: Key = Field(description="The preference's key, such as output.summary_style.")


class Listed(ByPrefix, InScope):
    """Which preferences."""

    limit: Whole = Field(default=100, ge=1, le=100, description="Most items of a page, 1 to 100.")


class NewPreference(KeyedValue, ByKey):
    """A preference to be created."""

    value: Value = Field(
        description="The value, of the type that value_type names, at most "
        f"{MAX_PREFERENCE_BYTES // 1024} KiB as JSON; null hides weaker scopes'. A scope holds "
        f"{PREFERENCE_QUOTA.words('preferences')}; {SHARE}, but of a user's own scope all."
    )


class ChangedPreference(Expected, NewPreference):
    """A preference to be changed."""


class DeletedPreference(Deleted, ByKey):
    """A preference to be deleted."""


class OfTask(Input):
    """Which task's preferences."""

    task_id: TaskId = Field(description="The task's id, a UUID.")
    include_sources: bool = Field(
        default=False,
        description="Say for each key which scope its value is from, or which scope's null "
        "hides it.",
    )


class Owned(Output):
    """Whose something is."""

    scope_type: ScopeType = Field(description="Whose it is.")
    scope_id: str | None = Field(description="The id of whose it is; null for the system's.")


class Preference(StoredValue, Owned):
    """A preference as it is stored."""

    value: Any = Field(description="Its value; null hides weaker scopes'.")


class Preferences(Output):
    """A page of preferences."""

    entries: list[Preference] = Field(description="The preferences, by key.")
    next_cursor: NextCursor = ""


class Source(Output):
    """Where an effective value is from."""

    key: str = Field(description="The key.")
    scope_type: ScopeType = Field(description="The scope that decided.")
    scope_id: str | None = Field(description="Its id; null for the system.")
    version: int = Field(description="The version of the preference there.")


class Invalid(Source):
    """A preference that was skipped."""

    reason: str = Field(description="Why.")


class Omitted(Output):
    """A scope whose preferences did not all fit."""

    scope_type: ScopeType = Field(description="The scope.")
    scope_id: str | None = Field(description="Its id; null for the system.")
    keys: int = Field(description="How many of its values would have won, and were left out.")


class Effective(Output):
    """What applies to a task."""

    effective: dict[str, Any] = Field(description="The value of each key.")
    sources: list[Source] = Field(
        default_factory=list[Source],
        description="Where each value is from, if that was asked for; a key that is here and not "
        "in effective is hidden by a null there.",
    )
    invalid: list[Invalid] = Field(description="Preferences whose value is not of their type.")
    omitted: list[Omitted] = Field(
        default_factory=list[Omitted],
        description="Scopes whose preferences were left out since the answer would be too large; "
        "their keys have no value here. List them with db.preference.list.",
    )


@family.tool(
    "db.preference.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a preference",
    example={"scope_type": "user", "scope_id": "alice", "key": "output.summary_style"},
)
async def get(ctx: Ctx, args: ByKey) -> Preference:
    """Read one scope's own preference.

    It does not look at other scopes: `db.preference.effective` says what applies to a task.
    Preferences of users and groups are there for these users alone, and for admins.
    """
    place = place_of(args)
    if not await _reaches(ctx, place):
        raise _not_found(args)
    found = await ctx.world.preferences.get(place, args.key)
    if found is None:
        raise _not_found(args)
    return shown(place, found)


@family.tool(
    "db.preference.list",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List preferences",
    example={"scope_type": "system"},
)
async def list_(ctx: Ctx, args: Listed) -> Preferences:
    """List one scope's own preferences by key, page by page; large values make a page shorter.

    A scope that does not exist for the caller has none.
    """
    place = place_of(args)
    reach = viewer_of(ctx.principal).reach
    listing = (LISTING, *reach, place.scope_type, place.scope_id, args.key_prefix)
    after = key_before(ctx.world, listing, args.cursor)
    if not await _reaches(ctx, place):
        return Preferences(entries=[])
    page = await ctx.world.preferences.page(place, args.key_prefix, after, args.limit)
    entries = [shown(place, one) for one in page.records]
    last = [entries[-1].key] if page.more else None
    return Preferences(entries=entries, **next_cursor(ctx.world, listing, last))


@family.tool(
    "db.preference.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a preference",
    example={
        "scope_type": "user",
        "scope_id": "alice",
        "key": "language.preferred",
        "value": "de",
        "value_type": "string",
    },
)
async def create(ctx: Ctx, args: NewPreference) -> Preference:
    """Create a preference of a scope; fails where the scope has the key already."""
    place = await _writable(ctx, args)
    await _check(ctx, args)
    change = args.change(ctx.principal)
    record = await ctx.world.preferences.create(ctx.tx, place, args.key, change)
    return shown(place, record)


@family.tool(
    "db.preference.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Update a preference",
    example={
        "scope_type": "user",
        "scope_id": "alice",
        "key": "output.summary_style",
        "value": "prose",
        "value_type": "string",
        "expected_version": 1,
    },
)
async def update(ctx: Ctx, args: ChangedPreference) -> Preference:
    """Change a preference of a scope.

    With expected_version it is changed only if nobody else changed it since; else the error is a
    conflict that names the current version.
    """
    place = await _writable(ctx, args)
    await _check(ctx, args)
    record = await ctx.world.preferences.update(
        ctx.tx, place, args.key, args.change(ctx.principal), args.expected_version
    )
    if record is None:
        raise _not_found(args)
    return shown(place, record)


@family.tool(
    "db.preference.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a preference",
    example={"scope_type": "user", "scope_id": "alice", "key": "output.summary_style"},
)
async def delete(ctx: Ctx, args: DeletedPreference) -> Nothing:
    """Delete a preference of a scope; what weaker scopes have applies again."""
    place = await _writable(ctx, args)
    gone = await ctx.world.preferences.delete(
        ctx.tx,
        place,
        args.key,
        expected=args.expected_version,
        by=ctx.principal.id,
        reason=args.reason,
    )
    if not gone:
        raise _not_found(args)
    return Nothing()


@family.tool(
    "db.preference.effective",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a task's effective preferences",
    not_found="Task not found",
    example={"task_id": "00000000-0000-4000-8000-0000000000b1"},
)
async def effective(ctx: Ctx, args: OfTask) -> Effective:
    """Work out what applies to a task: task before project, user, group and system.

    Null at a stronger scope hides weaker values. Values that contradict their type are skipped.
    What another user and that user's groups prefer is left out: it is for that user alone. Where
    many groups prefer more than fits one answer, the last of it is left out and told.
    """
    viewer, sources = viewer_of(ctx.principal), args.include_sources
    layers = await ctx.world.work.layers(viewer, args.task_id, sources=sources)
    if layers is None:
        raise NotFound("Task not found")
    found = effective_of(layers.found)
    invalid = [
        Invalid(
            key=one.record.key,
            scope_type=one.scope_type,
            scope_id=one.scope_id or None,
            version=one.record.version,
            reason=f"the value is not of type {one.record.value_type}",
        )
        for one in found.invalid
    ]
    more: dict[str, Any] = {}
    if args.include_sources:
        more["sources"] = [
            Source(
                key=key,
                scope_type=one.scope_type,
                scope_id=one.scope_id or None,
                version=one.record.version,
            )
            for key, one in found.sources.items()
        ]
    if layers.omitted:
        more["omitted"] = [
            Omitted(scope_type=one.scope_type, scope_id=one.scope_id or None, keys=one.keys)
            for one in layers.omitted
        ]
    return Effective(effective=found.values, invalid=invalid, **more)


def place_of(args: InScope) -> Place:
    """The scope that the arguments name."""
    if args.scope_type == "system":
        if args.scope_id is not None:
            _refuse("value", "scope_id must be left out when scope_type is system")
        return Place("system", "")
    if args.scope_id is None:
        _refuse("missing", "scope_id required when scope_type is not system")
    return Place(args.scope_type, args.scope_id or "")


def _refuse(rule: str, message: str) -> None:
    raise InvalidArguments([Problem("scope_id", rule, message)])


async def _reaches(ctx: Ctx, place: Place) -> bool:
    if place.scope_type == "system":
        return True
    scope_type: Any = place.scope_type
    return await ctx.world.work.reaches(viewer_of(ctx.principal), scope_type, place.scope_id)


async def _writable(ctx: Ctx, args: ByKey) -> Place:
    """The scope, if the caller may write there."""
    check_writable(args.key, ctx.principal, RESERVED_PREFERENCES)
    place = place_of(args)
    if place.scope_type == "system":
        check_system_writable(ctx.principal)
        return place
    check_within_bound(ctx.principal, place.scope_type)
    scope_type: Any = place.scope_type
    if not await ctx.world.work.changes(viewer_of(ctx.principal), scope_type, place.scope_id):
        raise NotFound(f"There is no {place.scope_type} {place.scope_id!r}.")
    return place


async def _check(ctx: Ctx, args: NewPreference) -> None:
    if f"{args.key}.".startswith(STEERING):
        message = (
            f"key {shorten(args.key)} is a system setting, and a preference of this name would "
            "change nothing. Use db.system_setting.create or db.system_setting.update"
        )
        raise InvalidArguments([Problem("key", "value", message)])
    most = MAX_PREFERENCE_BYTES
    await check_value(
        ctx.principal.id, args.key, args.value, args.value_type, nullable=True, most_bytes=most
    )


def _not_found(args: ByKey) -> NotFound:
    return NotFound(f"There is no preference {args.key} in this scope.")


def shown(place: Place, record: Record) -> Preference:
    """A record as the tools show it."""
    scope_type: Any = place.scope_type
    return Preference.of(record, scope_type=scope_type, scope_id=place.scope_id or None)
