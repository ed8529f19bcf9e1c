"""`toolgate mcp`: MCP on standard input and output."""

import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import logs, opening
from toolgate.cli.options import ConfigFile, DataFolder, load_settings
from toolgate.cli.output import note
from toolgate.cli.problems import ExitCode, Stop

if TYPE_CHECKING:
    from toolgate.app import App
    from toolgate.gate.principal import Principal
    from toolgate.settings import Settings

Key = Annotated[
    str | None,
    typer.Option(envvar="TOOLGATE_KEY", metavar="KEY", help="Key to run as its holder."),
]
Token = Annotated[
    str | None, typer.Option(metavar="TOKEN", help="The same, for the key of a user.")
]
NOBODY = (
    "No key was given, so only public tools are there. "
    "Use --key, or set TOOLGATE_KEY or TOOLGATE_ADMIN_KEY."
)


def mcp(
    ctx: typer.Context,
    key: Key = None,
    token: Token = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Serve one MCP client on standard input and output.

    Runs as the holder of the key, else as admin where TOOLGATE_ADMIN_KEY (or BACKEND_MANAGER_KEY)
    is set, else with public tools only.
    """
    settings = load_settings(ctx, config, data)
    logs.in_full()
    opening.wait_for(lambda: _serve(settings, token or key))


async def _serve(settings: "Settings", credential: str | None) -> None:
    import anyio

    from toolgate.app import opened

    async with opened(settings) as app:
        principal = await _identified(app, credential or settings.admin_key)
        from toolgate.transports.mcp.stdio import serve_stdio

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, app)
            underscores = settings.mcp.underscore_names
            await serve_stdio(app.gate, principal, underscore_names=underscores)
            tasks.cancel_scope.cancel()


async def _identified(app: "App", credential: str | None) -> "Principal":
    from toolgate.gate.principal import ANONYMOUS

    if not credential:
        note(NOBODY)
        return ANONYMOUS
    principal = await app.keys.identify(credential)
    if principal is None:
        why = "This key is unknown, expired or revoked."
        raise Stop(f"{why} `toolgate keys create` makes one.", ExitCode.REFUSED)
    return principal


async def _end_on_signal(app: "App") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            await app.gate.audit.flush()
            await app.sealer.seal()
            # The thread that reads standard input cannot be interrupted, so nothing is awaited.
            os._exit(0)
