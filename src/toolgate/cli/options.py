"""What every command takes: where the settings and the data are."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from toolgate.settings import Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings file; default: toolgate.toml in this folder."
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data folder; default: .toolgate."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The common options as a group was given them, for its subcommands."""

    config: Path | None = None
    data: Path | None = None
    as_json: bool = False


def group_options(ctx: typer.Context) -> GroupOptions:
    """What stood before the subcommand's name."""
    return ctx.obj if isinstance(ctx.obj, GroupOptions) else GroupOptions()


def help_when_alone(ctx: typer.Context) -> None:
    """A group's own action: say what it can do."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help().rstrip())
        raise typer.Exit


def command_group(help: str, **commands: Callable[..., None]) -> typer.Typer:
    """A group of commands by their names; `import_` is called `import`."""
    app = typer.Typer(help=help)
    app.callback(invoke_without_command=True)(help_when_alone)
    for name, command in commands.items():
        app.command(name.rstrip("_"))(command)
    return app


def command_settings(
    ctx: typer.Context, config: Path | None, data: Path | None, **flags: Any
) -> "Settings":
    """Read the settings; a flag is named like its setting, with `__` for the dot."""
    # Imported here: `toolgate --help` needs no settings.
    from toolgate.settings import read_settings

    before = group_options(ctx)
    by_name = {name.replace("__", "."): value for name, value in flags.items()}
    return read_settings(
        flags={"data": data or before.data} | by_name, file=config or before.config
    )
