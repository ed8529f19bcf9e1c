"""`toolgate switch`: tools and packs off and on again, while servers run."""

import json
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import say, say_json, table
from toolgate.cli.problems import Stop
from toolgate.cli.tools import every_tool, tool_named

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgate.gate.catalogue import AnyTool
    from toolgate.gate.live_switches import SwitchedOff
    from toolgate.settings import Settings

Name = Annotated[str, typer.Argument(metavar="NAME", help="A tool, or a pack for all its tools.")]

SETTING = "policy.disabled"


def group() -> typer.Typer:
    """The command group."""
    return command_group(
        "Switch tools and packs off and on while servers run.", off=off, on=on, list=list_
    )


def off(
    ctx: typer.Context,
    name: Name,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Switch a tool or a pack off. Running servers know within a second; calls that run finish."""
    from toolgate.packs import known_names

    settings = command_settings(ctx, config, data)
    catalogue, _ = every_tool(settings)
    packs = {tool.pack.name for tool in catalogue}
    if name not in packs and name in known_names():
        raise Stop(f"Pack {name} is not enabled (setting packs.enabled): all its tools are off.")
    if "*" in name:
        raise Stop(f"{name!r}: there are no patterns here. Name one tool, or a pack for all of it.")
    near = get_close_matches(name, packs, n=1, cutoff=0.8)
    if near and name not in packs and catalogue.find(name) is None:
        raise Stop(f"There is no tool or pack {name!r}. Did you mean {near[0]}?")
    full_name = name if name in packs else tool_named(catalogue, name, settings).name
    changed = _switch(settings, full_name, off=True)
    if as_json:
        return say_json({"name": full_name, "off": True, "changed": changed})
    say(f"{full_name} is switched off{'' if changed else ' already'}.")


def on(
    ctx: typer.Context,
    name: Name,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Switch a tool or a pack on again. Running servers know within a second."""
    settings = command_settings(ctx, config, data)
    changed = _switch_on(settings, name)
    still = _still_off(settings, changed or name)
    if changed is None:
        none = f"{name!r} is not switched off. `toolgate switch list` shows what is."
        raise Stop(f"{name} is switched off {still}." if still else none)
    if as_json:
        return say_json({"name": changed, "off": still is not None, "changed": True})
    say(f"{changed} is switched on{f', but still off {still}' if still else ''}.")


def _still_off(settings: "Settings", name: str) -> str | None:
    """What else keeps a tool or a pack off, and where to change that."""
    catalogue, _ = every_tool(settings)
    return cause_in_words(settings, _read(settings), name, catalogue.find(name))


def cause_in_words(
    settings: "Settings", live: "SwitchedOff", name: str, tool: "AnyTool | None"
) -> str | None:
    """By what a tool or a pack is off, and the command that changes that; None where it is on."""
    for one in (name, *((tool.name, tool.pack.name) if tool else ())):
        what = "" if one in (name, tool and tool.name) else f"with its pack {one}, "
        if one in settings.policy.disabled:
            return f"{what}by the setting {SETTING}"
        if one in live.names:
            commands = " and ".join(f"`{command}`" for command in _commands(live, one))
            step = f" (to change that: {commands})" if commands else ""
            return f"{what}by {_source(live, one)}{step}"
    return None


def _source(live: "SwitchedOff", name: str) -> str:
    """Who switched something off, in words."""
    from toolgate.gate.live_switches import DISABLED

    if keys := live.settings.get(name):
        return f"the system setting{'s' * (len(keys) > 1)} {' and '.join(keys)}"
    source = live.sources[name]
    return "toolgate switch" if source == DISABLED else f"a system setting of pack {source}"


def _commands(live: "SwitchedOff", name: str) -> list[str]:
    """The commands that change the settings by which a tool is off."""
    return [_command(live, name, key) for key in live.settings.get(name, ())]


def _command(live: "SwitchedOff", name: str, key: str) -> str:
    others = sorted(one for one, keys in live.settings.items() if key in keys and one != name)
    if not others:
        return f"toolgate call db.system_setting.delete key={key}"
    value = shlex.quote(json.dumps(others))
    return f"toolgate call db.system_setting.update key={key} value_type=array value={value}"


def _switch_on(settings: "Settings", name: str) -> str | None:
    """The name under which it was off; None where it was not.

    A tool that is no longer installed can be switched on, too.
    """
    live = _read(settings)
    matches = [one for one in live.names if name in (one, one.replace(".", "_"))]
    return matches[0] if matches and _switch(settings, matches[0], off=False) else None


def list_(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List what is switched off, and by what."""
    settings = command_settings(ctx, config, data)
    live = _read(settings)
    rows = [(name, f"setting {SETTING}") for name in sorted(settings.policy.disabled)]
    rows += [(name, _source(live, name)) for name in sorted(live.names)]
    if as_json:
        commands = {name: {"commands": _commands(live, name)} for name in live.settings}
        return say_json([{"name": name, "by": by, **commands.get(name, {})} for name, by in rows])
    if not rows:
        return say("Nothing is switched off.")
    table(("name", "by"), rows)
    for name in sorted(live.settings):
        say(f"\nTo switch {name} on:\n" + "\n".join(f"  {one}" for one in _commands(live, name)))


def _read(settings: "Settings") -> "SwitchedOff":
    from toolgate.gate.live_switches import switched_off

    return environment.run_on_database(settings, lambda database: database.read(switched_off))


def _switch(settings: "Settings", name: str, *, off: bool) -> bool:
    from toolgate.gate.live_switches import switch

    def write(connection: "Connection") -> bool:
        return switch(connection, name, off=off)

    return environment.run_on_database(settings, lambda database: database.write(write))
