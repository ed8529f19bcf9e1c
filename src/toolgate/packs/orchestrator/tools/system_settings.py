"""System settings: what steers the whole system, changed by comparing versions."""

from pydantic import Field

from toolgate.gate.arguments import nearest, shorten
from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict, InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor
from toolgate.packs.orchestrator.records import SETTING_QUOTA, SETTINGS, SHARE
from toolgate.packs.orchestrator.steering import (
    DISABLED,
    ENABLED,
    SETTING_TOOLS,
    TOOL,
    broken_rule,
    is_unknown_switch,
    tool_of,
    tools_named,
    tools_switched_off,
)
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.tools.values import (
    MAX_VALUE_BYTES,
    ByPrefix,
    Deleted,
    Expected,
    KeyedValue,
    Nothing,
    SettingKey,
    SettingPrefix,
    StoredValue,
    Value,
    check_system_writable,
    check_value,
    check_writable,
)
from toolgate.packs.orchestrator.vocabulary import RESERVED_SETTINGS
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("settings", ORCHESTRATOR)

LISTING = "db.system_setting.list"

Ctx = Context[OrchestratorWorld]


class ByKey(Input):
    """Which setting."""

    key: SettingKey = Field(description="The setting's key, such as models.cache.max_bytes.")


class Listed(ByPrefix):
    """Which settings."""

    key_prefix: SettingPrefix = Field(default="", description="Only keys that begin with this.")


class NewSetting(KeyedValue, ByKey):
    """A setting to be created."""

    value: Value = Field(
        description="The value, of the type that value_type names, at most "
        f"{MAX_VALUE_BYTES // 1024} KiB as JSON. There are {SETTING_QUOTA.words('settings')}; "
        f"{SHARE}."
    )


class ChangedSetting(Expected, NewSetting):
    """A setting to be changed."""


class DeletedSetting(Deleted, ByKey):
    """A setting to be deleted."""


class Setting(StoredValue):
    """A setting as it is stored."""


class Settings(Output):
    """A page of settings."""

    entries: list[Setting] = Field(description="The settings, by key.")
    next_cursor: NextCursor = ""


def _not_found(key: str) -> NotFound:
    return NotFound(f"There is no system setting {key}.")


@family.tool(
    "db.system_setting.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a system setting",
    example={"key": "models.cache.max_bytes"},
)
async def get(ctx: Ctx, args: ByKey) -> Setting:
    """Read one system setting with its version.

    A setting that was never set is not found, also where the system has a default for it.
    """
    found = await ctx.world.settings.get(SETTINGS, args.key)
    if found is None:
        raise _not_found(args.key)
    return Setting.of(found)


@family.tool(
    "db.system_setting.list", role=Role.ADMIN, effect=Effect.READ, title="List system settings"
)
async def list_(ctx: Ctx, args: Listed) -> Settings:
    """List system settings by key, page by page; large values make a page shorter."""
    listing = (LISTING, args.key_prefix)
    after = key_before(ctx.world, listing, args.cursor)
    page = await ctx.world.settings.page(SETTINGS, args.key_prefix, after, args.limit)
    entries = [Setting.of(one) for one in page.records]
    last = [entries[-1].key] if page.more else None
    return Settings(entries=entries, **next_cursor(ctx.world, listing, last))


@family.tool(
    "db.system_setting.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a system setting",
    example={
        "key": "models.download.require_user_approval",
        "value": True,
        "value_type": "boolean",
    },
)
async def create(ctx: Ctx, args: NewSetting) -> Setting:
    """Create a system setting; fails where the key exists already."""
    _check_caller(ctx, args.key)
    await _check(ctx, args)
    change = args.change(ctx.principal)
    return Setting.of(await ctx.world.settings.create(ctx.tx, SETTINGS, args.key, change))


@family.tool(
    "db.system_setting.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Update a system setting",
    example={
        "key": "models.cache.max_bytes",
        "value": 53687091200,
        "value_type": "number",
        "expected_version": 1,
    },
)
async def update(ctx: Ctx, args: ChangedSetting) -> Setting:
    """Change a system setting, also its type.

    With expected_version it is changed only if nobody else changed it since; else the error is a
    conflict that names the current version.
    """
    _check_caller(ctx, args.key)
    await _check(ctx, args)
    changed = await ctx.world.settings.update(
        ctx.tx, SETTINGS, args.key, args.change(ctx.principal), args.expected_version
    )
    if changed is None:
        raise _not_found(args.key)
    return Setting.of(changed)


@family.tool(
    "db.system_setting.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a system setting",
    example={"key": "models.cache.max_bytes"},
)
async def delete(ctx: Ctx, args: DeletedSetting) -> Nothing:
    """Delete a system setting; its history stays, and the system's default applies again."""
    _check_caller(ctx, args.key)
    gone = await ctx.world.settings.delete(
        ctx.tx,
        SETTINGS,
        args.key,
        expected=args.expected_version,
        by=ctx.principal.id,
        reason=args.reason,
    )
    if not gone:
        raise _not_found(args.key)
    return Nothing()


def _check_caller(ctx: Ctx, key: str) -> None:
    check_writable(key, ctx.principal, RESERVED_SETTINGS)
    check_system_writable(ctx.principal)


async def _check(ctx: Ctx, args: NewSetting) -> None:
    await check_value(ctx.principal.id, args.key, args.value, args.value_type, nullable=False)
    if is_unknown_switch(args.key):
        raise _unknown_switch(ctx, args.key)
    if wrong := broken_rule(args.key, args.value):
        raise InvalidArguments([Problem("value", "value", wrong)])
    for name in tools_named(args.key, args.value):
        _check_tool(ctx, args.key, name)
    for name in tools_switched_off(args.key, args.value):
        if name.startswith(SETTING_TOOLS):
            raise _needed_to_switch(name)
    if args.value is True and (tool := tool_of(args.key)) is not None:
        await _check_not_listed(ctx, tool)


def _check_tool(ctx: Ctx, key: str, name: str) -> None:
    """A switch of a tool that there is not would switch nothing."""
    names = _tool_names(ctx)
    if name not in names and not ctx.world.tools.is_off(ctx.principal, name):
        near = nearest(name, names)
        hint = f"Did you mean {near}?" if near else "`toolgate tools` lists them."
        field = "value" if key == DISABLED else "key"
        message = f"{field} names an unknown tool, {shorten(name)}. {hint}"
        raise InvalidArguments([Problem(field, "value", message)])


def _tool_names(ctx: Ctx) -> list[str]:
    return [tool.name for tool in ctx.world.tools.visible(ctx.principal)]


def _unknown_switch(ctx: Ctx, key: str) -> InvalidArguments:
    """A misspelled switch would be stored, and switch nothing."""
    near = nearest(key, [DISABLED, *(f"{TOOL}{name}{ENABLED}" for name in _tool_names(ctx))])
    hint = f" Did you mean {near}?" if near else ""
    message = (
        f"key {shorten(key)} switches nothing. In mcp.* there are {DISABLED} and "
        f"{TOOL}NAME{ENABLED}.{hint}"
    )
    return InvalidArguments([Problem("key", "value", message)])


def _needed_to_switch(name: str) -> InvalidArguments:
    message = (
        f"value would switch {name} off, and no setting could switch it on again: "
        f"{SETTING_TOOLS}* stay on. `toolgate switch off {name}` can be taken back"
    )
    return InvalidArguments([Problem("value", "value", message)])


async def _check_not_listed(ctx: Ctx, tool: str) -> None:
    """The list wins over a tool's own setting, which would be stored without effect."""
    listed = await ctx.world.settings.get(SETTINGS, DISABLED)
    if listed is not None and tool in tools_switched_off(DISABLED, listed.value):
        raise Conflict(
            f"{tool} stays off: it is in {DISABLED}, and that list wins. "
            f"Take it out of the list with {SETTING_TOOLS}update."
        )
