"""`toolgate tools`: the catalogue, as a principal sees it."""

import difflib
import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.arguments import is_text_argument
from toolgate.cli.options import (
    AsJson,
    ConfigFile,
    DataFolder,
    GroupOptions,
    command_settings,
    group_options,
)
from toolgate.cli.output import definitions, say, say_json, strong, table
from toolgate.cli.principals import As, principal_named
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from toolgate.gate.catalogue import AnyTool, Catalogue
    from toolgate.gate.policy import Decision
    from toolgate.settings import Settings

    Listed = list[tuple[AnyTool, Decision]]

PackName = Annotated[str | None, typer.Option(metavar="PACK", help="Only tools of this pack.")]
RoleName = Annotated[
    str | None, typer.Option(metavar="ROLE", help="Only tools of this role: public, user or admin.")
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]


def group() -> typer.Typer:
    """The command group."""
    app = typer.Typer(help="List the tools, or show one (`tools show NAME`).")
    app.callback(invoke_without_command=True)(tools)
    app.command("show")(show)
    return app


def tools(
    ctx: typer.Context,
    *,
    pack: PackName = None,
    role: RoleName = None,
    principal: As = "admin",
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the tools that a principal sees."""
    if ctx.invoked_subcommand:
        ctx.obj = GroupOptions(config, data, as_json)
        return
    settings = command_settings(ctx, config, data)
    listed, replaced = environment.run_async(lambda: _visible(settings, principal))
    listed = _filter(settings, listed, pack, role)
    if as_json:
        from toolgate.transports.http import tool_description

        return say_json({"tools": [tool_description(tool) for tool, one in listed if one.visible]})
    if not listed:
        return say("No tools.")
    rows = (_row(tool, decision, tool.name in replaced) for tool, decision in listed)
    table(("name", "pack", "role", "effect", "what it does"), rows)


def _row(tool: "AnyTool", decision: "Decision", replaces: bool) -> tuple[str, ...]:
    off = "" if decision.allowed else f" (off: {_cause(decision)})"
    instead = " (replaces the built-in tool)" if replaces else ""
    return (tool.name, tool.pack.name, tool.role, tool.effect, f"{tool.title}{instead}{off}")


def _cause(decision: "Decision") -> str:
    return "switched off" if decision.off else decision.rule


async def _visible(settings: "Settings", principal: str) -> "tuple[Listed, Collection[str]]":
    """The tools a principal sees, and the names of those that took a built-in one's place.

    Those too that it would see if they were not switched off: they exist for who switches them.
    """
    from toolgate.app import opened

    async with opened(settings, existing=True) as app:
        who = await principal_named(principal, app.keys)
        every = [(tool, app.gate.policy.decide(who, tool)) for tool in app.gate.catalogue]
        visible = [(tool, one) for tool, one in every if one.visible or one.off]
        return visible, app.gate.catalogue.replaced.keys()


def _filter(settings: "Settings", listed: "Listed", pack: str | None, role: str | None) -> "Listed":
    from toolgate import packs
    from toolgate.gate.principal import Role

    of_listed = {tool.pack.name for tool, _ in listed}
    names = {*packs.known_names(), *of_listed}
    if pack and pack not in names:
        raise Stop(f"There is no pack {pack!r}. Packs: {', '.join(sorted(names))}.")
    if pack and pack not in {*enabled_packs(settings), *of_listed}:
        raise Stop(f"Pack {pack} is not enabled (setting packs.enabled).")
    if role and role not in list(Role):
        raise Stop(f"There is no role {role!r}. Roles: {', '.join(Role)}.")
    return [
        (tool, decision)
        for tool, decision in listed
        if pack in (None, tool.pack.name) and role in (None, tool.role.value)
    ]


def show(
    ctx: typer.Context,
    *,
    name: ToolName,
    principal: As = "admin",
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show one tool: its arguments, role, effect, route and an example."""
    settings = command_settings(ctx, config, data)
    listed, _ = environment.run_async(lambda: _visible(settings, principal))
    from toolgate.transports.http import tool_description

    tool = tool_named((tool for tool, _ in listed), name, settings)
    example = dict(tool.example) if has_example(tool) else None
    description = tool_description(tool) | {"example": example}
    if as_json or group_options(ctx).as_json:
        return say_json(description)
    (off,) = (decision.off for one, decision in listed if one is tool)
    step = f" (off: switched off; `toolgate why admin {tool.name}` says by what)" if off else ""
    say(f"{strong(tool.name)}: {tool.title}{step}\n\n{tool.description}\n")
    definitions(
        {name: str(description[name]) for name in ("pack", "family", "role", "effect", "route")}
    )
    _show_fields("Arguments", tool.input_schema)
    if tool.output_schema:
        _show_fields("Answer", tool.output_schema, tool.attachment_field)
    else:
        say("\nAnswer: any JSON")
    if tool.attachment_field:
        say(f"\nAttachment: {tool.attachment_field}. `toolgate call` saves it with --save FILE.")
    if example is None:
        say(f"\nUsage\n  {usage_line(tool)}")
    else:
        say(f"\nExample\n  {example_line(tool)}\n  {json.dumps(example, ensure_ascii=False)}")


def known_tool(settings: "Settings", name: str) -> "AnyTool":
    """The tool of this name, the user's own included, without opening anything."""
    catalogue, _ = every_tool(settings)
    return tool_named(catalogue, name, settings)


def every_tool(settings: "Settings") -> "tuple[Catalogue, int]":
    """Every tool there is, and how many of them are the user's own."""
    from toolgate.app import offers_of
    from toolgate.extend.own_tools import OwnTools
    from toolgate.gate.catalogue import Catalogue

    offers = offers_of(settings)
    if not settings.extend.tools:
        return Catalogue(offers), 0
    own = OwnTools(settings.extend, settings.limits).offer
    return Catalogue(offers, own, changing=settings.extend.reload), len(own.tools)


def enabled_packs(settings: "Settings") -> "Collection[str]":
    """The names of the packs that are enabled."""
    from toolgate.app import offers_of

    return [offer.pack.name for offer in offers_of(settings)]


def tool_named(tools: "Iterable[AnyTool]", name: str, settings: "Settings") -> "AnyTool":
    """The tool of this name, in either spelling; else an error with what may have been meant."""
    every = list(tools)
    if matches := [tool for tool in every if name in (tool.name, tool.alias)]:
        return matches[0]
    raise Stop(f"There is no tool {name!r}. {hint_for(name, every, settings)}")


def hint_for(name: str, tools: "Iterable[AnyTool]", settings: "Settings") -> str:
    """What to do about a name that no tool has."""
    from toolgate import packs

    if pack := packs.disabled_pack_of(name, settings.packs.enabled):
        return f"It is in pack {pack}, which is not enabled (setting packs.enabled)."
    near = difflib.get_close_matches(name, [tool.name for tool in tools], n=3)
    return f"Did you mean {' or '.join(near)}?" if near else "`toolgate tools` lists them."


def _show_fields(heading: str, schema: dict[str, Any], attachment: str | None = None) -> None:
    from toolgate.gate.schema_fields import fields_in

    fields = list(fields_in(schema))
    say(f"\n{heading}{'' if fields else ': none'}")
    if not fields:
        return
    table(
        ("name", "type", "required", "meaning"),
        [
            (
                path,
                "attachment" if path.rpartition(".")[2] == attachment else type_of(one),
                "yes" if required else "no",
                one.get("description", ""),
            )
            for path, one, required in fields
        ],
    )


def type_of(schema: dict[str, Any]) -> str:
    """A schema's type in a word or two."""
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    if "$ref" in schema:
        return "object"
    kind = schema.get("type", "any")
    return f"list of {type_of(schema['items'])}" if kind == "array" and "items" in schema else kind


def has_example(tool: "AnyTool") -> bool:
    """Whether its example has all that a call must have; a tool need not declare one."""
    return all(name in tool.example for name in tool.input_schema.get("required", ()))


def usage_line(tool: "AnyTool") -> str:
    """The command with the arguments that it must have, to be filled in."""
    fields: dict[str, Any] = tool.input_schema["properties"]
    required = (
        f"{name}={type_of(fields[name]).upper().replace(' ', '-')}"
        for name in tool.input_schema.get("required", ())
    )
    return " ".join(["toolgate call", tool.name, *required])


def example_line(tool: "AnyTool") -> str:
    """The tool's example as a command to paste."""
    if any(isinstance(value, dict | list) for value in tool.example.values()):
        arguments = json.dumps(tool.example, ensure_ascii=False)
        return f"toolgate call {tool.name} --json {shlex.quote(arguments)}"
    pairs = [
        f"{key}={value if is_text_argument(tool.input_schema, key) else json.dumps(value)}"
        for key, value in tool.example.items()
    ]
    return " ".join(["toolgate call", tool.name, *map(shlex.quote, pairs)])
