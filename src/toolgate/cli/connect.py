"""`toolgate connect`: the configuration of an MCP client for this server."""

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli.clients import CLIENTS, ClientConfig, ServerDetails, write
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings, group_options
from toolgate.cli.output import note, say, say_json
from toolgate.cli.problems import Stop
from toolgate.cli.serve import url_of

if TYPE_CHECKING:
    from toolgate.settings import Settings

ClientName = Annotated[str, typer.Argument(metavar="CLIENT", help=f"{', '.join(CLIENTS)}.")]
Url = Annotated[
    str | None, typer.Option(metavar="URL", help="The server's URL, if it is not this one.")
]
Key = Annotated[
    str | None, typer.Option(metavar="KEY", help="Write this key into the configuration.")
]
Variable = Annotated[
    str,
    typer.Option("--key-variable", metavar="NAME", help="Environment variable that holds the key."),
]
SignIn = Annotated[
    bool, typer.Option("--sign-in", help="No key: a person signs in with a browser (OAuth).")
]
Write = Annotated[
    bool,
    typer.Option("--write", help="Merge it into the client's file; the old file is kept as .bak."),
]
Name = Annotated[str, typer.Option(metavar="NAME", help="Name of this server in the client.")]


def connect(
    ctx: typer.Context,
    *,
    client: ClientName,
    url: Url = None,
    key: Key = None,
    key_variable: Variable = "TOOLGATE_KEY",
    sign_in: SignIn = False,
    write_it: Write = False,
    name: Name = "toolgate",
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Print an MCP client's configuration for this server, or write it.

    No key is written unless --key is given: clients read it from the environment, or ask.
    """
    if client not in CLIENTS:
        raise Stop(f"There is no client {client!r}. Clients: {', '.join(CLIENTS)}.")
    if key and sign_in:
        raise Stop("--key and --sign-in exclude each other. Use one of them.")
    settings = command_settings(ctx, config, data)
    endpoint = _endpoint(settings, url)
    client_config = CLIENTS[client](
        ServerDetails(
            name=name,
            url=endpoint,
            key=key,
            variable=key_variable,
            command=_command(),
            arguments=["mcp", "--url", endpoint] if url else _arguments(ctx, settings, config),
            ca=None if url else _ca(settings),
            signs_in=sign_in,
        )
    )
    written = write(client_config, name) if write_it else None
    if as_json:
        say_json(_as_json(client_config, name, written))
    elif written is None:
        _print(client_config, name)
    else:
        say(f"{'Wrote' if written else 'Nothing to change in'} {client_config.file}.")
    if client_config.hint and not as_json:
        note(client_config.hint)
    if "--data" in client_config.entry.get("args", ()):
        _warn_of_variables(settings)
        _warn_without_data(settings)


def _endpoint(settings: "Settings", url: str | None) -> str:
    address = url or url_of(settings.server)
    if not address.startswith(("http://", "https://")):
        raise Stop(f"--url {address!r} is not a URL. Write it like http://127.0.0.1:8765.")
    address = address.rstrip("/")
    return address if address.endswith("/mcp") else f"{address}/mcp"


def _command() -> str:
    """The command's full path: desktop applications do not know the shell's search path."""
    beside = Path(sys.executable).with_name("toolgate")
    return str(beside) if beside.exists() else shutil.which("toolgate") or "toolgate"


def _arguments(ctx: typer.Context, settings: "Settings", config: Path | None) -> list[str]:
    """The command without a server: the same settings and data, from wherever it is started."""
    from toolgate.settings import file_used

    data = ["mcp", "--data", str(settings.data.absolute())]
    used = file_used(config or group_options(ctx).config)
    return [*data, "--config", str(used.absolute())] if used else data


def _warn_of_variables(settings: "Settings") -> None:
    """What is set here only, and would not hold where the client starts the command."""
    from toolgate.settings import variables_in_use

    carried = ("data", "admin_key")
    here = variables_in_use(type(settings))
    if lost := [variable for variable, name in here.items() if name not in carried]:
        step = "Put them in the settings file, and connect again."
        note(
            f"These are not written, so they do not apply to this client: {', '.join(lost)}. {step}"
        )


def _warn_without_data(settings: "Settings") -> None:
    from toolgate.settings import SQLITE_FILE

    if not settings.database_url.startswith(SQLITE_FILE):
        return
    if not Path(settings.database_url.removeprefix(SQLITE_FILE)).exists():
        step = "`toolgate mcp` will not start there. Name the right folder with --data"
        note(f"There is no data in {settings.data.absolute()}. {step}, or run `toolgate serve`.")


def _ca(settings: "Settings") -> Path | None:
    if not settings.server.https:
        return None
    from toolgate.certificates import files_in

    return files_in(settings.data).ca.absolute()


def _print(client: ClientConfig, name: str) -> None:
    if client.command:
        say(f"In a terminal:\n\n  {client.command}\n")
    say(f"{'Or in' if client.command else 'In'} {client.file} ({client.title}):\n")
    say(json.dumps(client.content(name), indent=2, ensure_ascii=False))


def _as_json(client: ClientConfig, name: str, written: bool | None) -> dict[str, object]:
    return {
        "client": client.title,
        "file": str(client.file),
        "config": client.content(name),
        "command": client.command,
        "written": bool(written),
    }
