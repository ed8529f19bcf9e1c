"""What was before: changes of settings and preferences, versions of skills."""

from typing import Any, Literal

import orjson
from pydantic import Field

from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output
from toolgate.packs.orchestrator import records
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, SomeId, Uuid
from toolgate.packs.orchestrator.records import SETTING, SETTINGS, Place
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.skills.store import (
    KEPT_DAYS,
    KEPT_OF_DELETED,
    KEPT_VERSIONS,
)
from toolgate.packs.orchestrator.tools.operator.lists import Ctx, known, listed, shown
from toolgate.packs.orchestrator.tools.values import Key, SettingKey
from toolgate.packs.orchestrator.vocabulary import ScopeType, ValueType

family = Family("operator_history", ORCHESTRATOR)

ChangeKind = Literal["created", "updated", "deleted"]
SKILL = "00000000-0000-4000-8000-0000000000d1"
KEPT = (
    f"Of each key, {records.KEPT_VERSIONS} changes are kept, or fewer where a scope's are large "
    f"together; the last {records.PINNED_VERSIONS} small ones while the key is there."
)


class SettingHistory(Paged):
    """Which setting."""

    key: SettingKey = Field(description="The setting's key.")


class PreferenceHistory(Paged):
    """Which preference."""

    scope_type: ScopeType = Field(description="The kind of scope.")
    scope_id: SomeId = Field(default="", description="The id of the scope; empty for `system`.")
    key: Key = Field(description="The preference's key.")


class SkillHistory(Paged):
    """Which skill."""

    skill_id: Uuid = Field(description="The skill's id; one that was deleted has versions too.")


class Change(Output):
    """One change of a setting or preference."""

    version: int = Field(description="The version that it made.")
    change: ChangeKind = Field(
        description="What was done: null is a value too, and tells nothing of it."
    )
    old: Any = Field(description="The value before; null before it was created.")
    new: Any = Field(description="The value after; null after it was deleted.")
    old_type: ValueType | None = Field(
        description="The value_type before; null also in what an older version of toolgate noted."
    )
    new_type: ValueType | None = Field(description="The value_type after; null likewise.")
    changed_by: str = Field(description="Who changed it.")
    reason: str | None = Field(description="Why.")
    changed_at: str = Field(description="When, ISO 8601.")


class Changes(Output):
    """A page of changes."""

    entries: list[Change] = Field(description="The changes, oldest first.")
    next_cursor: NextCursor = ""


class Version(Output):
    """One version of a skill."""

    version: int = Field(description="Its number.")
    name: str = Field(description="The skill's name.")
    content: str = Field(description="Its text.")
    scope: str = Field(description="Whom it was for.")
    scope_id: str = Field(description="The id of the user, group or project; empty for global.")
    changed_by: str = Field(description="Who stored it.")
    changed_at: str = Field(description="When, ISO 8601.")


class Versions(Output):
    """A page of versions."""

    entries: list[Version] = Field(description="The versions, oldest first.")
    next_cursor: NextCursor = ""


@family.tool(
    "operator.system_setting.history",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Show how a system setting was changed",
    example={"key": "models.cache.max_bytes"},
    note=KEPT,
)
async def setting(ctx: Ctx, args: SettingHistory) -> Changes:
    """Show the last changes of a system setting, oldest first."""
    where = {"scope_type": SETTING, "scope_id": "", "key": args.key}
    rows, more = await listed(ctx, "change", args, where)
    if not rows and not args.cursor and not await ctx.world.settings.get(SETTINGS, args.key):
        raise NotFound(f"There is no system setting {args.key!r}.")
    return Changes(entries=[_change(row) for row in rows], **more)


@family.tool(
    "operator.preference.history",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Show how a preference was changed",
    example={"scope_type": "system", "key": "language.preferred"},
    note=KEPT,
)
async def preference(ctx: Ctx, args: PreferenceHistory) -> Changes:
    """Show the last changes of a preference, oldest first."""
    where = {"scope_type": args.scope_type, "scope_id": args.scope_id, "key": args.key}
    rows, more = await listed(ctx, "change", args, where)
    place = Place(args.scope_type, args.scope_id)
    if not rows and not args.cursor and not await ctx.world.preferences.get(place, args.key):
        raise NotFound(f"There is no preference {args.key!r}.")
    return Changes(entries=[_change(row) for row in rows], **more)


@family.tool(
    "operator.skill.versions",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Show the versions of a skill",
    example={"skill_id": SKILL},
    note=f"{KEPT_VERSIONS} are kept; of a deleted skill {KEPT_OF_DELETED}, for {KEPT_DAYS} days "
    "or until others of its scope were deleted that are large together.",
)
async def skill(ctx: Ctx, args: SkillHistory) -> Versions:
    """Show the last versions of a skill, oldest first."""
    rows, more = await listed(ctx, "skill_version", args, {"skill_id": args.skill_id})
    if not rows and not args.cursor:
        await known(ctx, "skill", args.skill_id)
    return Versions(entries=[shown(Version, row) for row in rows], **more)


def _change(row: Row) -> Change:
    values = {
        name: None if row[name] is None else orjson.loads(row[name]) for name in ("old", "new")
    }
    before, after = row["old"] is not None, row["new"] is not None
    change = ("updated" if before else "created") if after else "deleted"
    return shown(Change, {**row, **values, "change": change})
