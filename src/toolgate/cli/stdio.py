"""`toolgate mcp`: MCP on standard input and output."""

import gc
import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate import logs
from toolgate.cli import environment
from toolgate.cli.options import ConfigFile, DataFolder, command_settings, group_options
from toolgate.cli.output import note
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.serve import replacement_warning

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from toolgate.app import App
    from toolgate.gate.principal import Principal
    from toolgate.settings import Settings

Key = Annotated[
    str | None,
    typer.Option(envvar="TOOLGATE_KEY", metavar="KEY", help="Key to authenticate with."),
]
Token = Annotated[
    str | None, typer.Option(metavar="TOKEN", help="The same, for a user's key or access token.")
]
Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Forward everything to the server at this URL."),
]
Ca = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", help="With --url: file with the CA to trust."),
]
LONGEST_LINE = 16 * 1024 * 1024
LOCAL = ("localhost", "127.0.0.1", "::1")
NOBODY = (
    "No key was given, so only public tools are available. "
    "Use --key, or set TOOLGATE_KEY or TOOLGATE_ADMIN_KEY in the environment of this command."
)


def mcp(
    ctx: typer.Context,
    *,
    key: Key = None,
    token: Token = None,
    url: Url = None,
    ca: Ca = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Serve one MCP client on standard input and output.

    If --data names a folder without data, none is created. Otherwise data is created only if a
    database is configured, a settings file exists, or an admin key is in the environment.

    Acts as the holder of the key; without one, as admin if TOOLGATE_ADMIN_KEY (or
    BACKEND_MANAGER_KEY) is in the environment of this command; otherwise only public tools are
    available. An admin key in the settings file or the .env beside it makes nobody an admin here:
    pass it with --key.

    With --url, messages are forwarded to a running server and no data is opened here. Only a key or
    token given to this command is sent there.
    """
    settings = command_settings(ctx, config, data)
    logs.set_up(settings.log)
    if url is not None:
        endpoint = _endpoint(url)
        _check_ca(ca, endpoint)
        longest = max(LONGEST_LINE, settings.limits.body_bytes)
        return environment.run_async(lambda: _bridge(endpoint, token or key, ca, longest))
    if ca is not None:
        raise Stop("--ca is for use with --url. Give both, or neither.")
    # Who may read the settings file is not yet admin: every client that is connected may name it.
    from toolgate.settings import admin_key_of_environment

    admin_key = admin_key_of_environment()
    # A key that was made somewhere cannot be known to data that is only made now.
    existing = bool(token or key) or not _may_create_data(ctx, config, data, admin_key)
    environment.run_async(lambda: _serve(settings, token or key or admin_key, existing), often=True)


def _may_create_data(
    ctx: typer.Context, config: Path | None, data: Path | None, admin_key: str | None
) -> bool:
    """Whether new data is wanted: a client may start this in any folder, or with a misspelt one."""
    from toolgate.sections import Settings
    from toolgate.settings import file_used, variables_in_use

    before, from_variables = group_options(ctx), set(variables_in_use(Settings).values())
    if "database.url" in from_variables:
        return True
    if data or before.data or "data" in from_variables:
        return False
    return bool(admin_key or file_used(config or before.config))


def _endpoint(url: str) -> str:
    """The MCP endpoint of a server's address."""
    from urllib.parse import urlsplit

    message = f"--url {url!r} is not a URL. Write it like http://127.0.0.1:8765."
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise Stop(message) from None
    if not fits:
        raise Stop(message)
    if parts.username is not None:
        raise Stop("--url must not contain a user name or password. Give the key with --key.")
    path = parts.path if parts.path not in ("", "/") else "/mcp"
    return parts._replace(path=path, fragment="").geturl()


def _check_ca(ca: Path | None, endpoint: str) -> None:
    if ca is None:
        return
    import ssl

    if not endpoint.startswith("https:"):
        raise Stop("--ca is for HTTPS. Write --url https://…, or leave out --ca.")
    try:
        ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, FileNotFoundError):
        raise Stop(f"--ca {ca} is not a file with a certificate in PEM format.") from None


async def _bridge(endpoint: str, credential: str | None, ca: Path | None, longest: int) -> None:
    from urllib.parse import urlsplit

    import anyio

    from toolgate.transports.mcp.bridge.relay import bridge

    if credential and endpoint.startswith("http:") and urlsplit(endpoint).hostname not in LOCAL:
        note("The key is sent without encryption. Use https:// for another machine.")
    async with anyio.create_task_group() as tasks:
        await tasks.start(_end_on_signal, None)
        await bridge(endpoint, credential, ca=ca, longest=longest, say=note)
        tasks.cancel_scope.cancel()


async def _serve(settings: "Settings", credential: str | None, existing: bool) -> None:
    import anyio

    from toolgate.app import opened

    async with opened(settings, existing=existing) as app:
        principal = await _identify(app, credential)
        for name in app.gate.catalogue.replaced:
            note(replacement_warning(name))
        from toolgate.transports.mcp.stdio import serve_stdio

        async with anyio.create_task_group() as tasks:
            await tasks.start(_end_on_signal, app)
            # What lives now lives as long as the process: keep the collector away from it.
            gc.freeze()
            underscores = settings.mcp.underscore_names
            identify = partial(app.credentials.holder, credential) if credential else None
            await serve_stdio(app.gate, principal, underscore_names=underscores, identify=identify)
            tasks.cancel_scope.cancel()


async def _identify(app: "App", credential: str | None) -> "Principal":
    from toolgate.gate.principal import ANONYMOUS

    if not credential:
        note(NOBODY)
        return ANONYMOUS
    principal = await _holder(app, credential)
    if principal is None:
        why = "This key is unknown, expired or revoked."
        raise Stop(f"{why} `toolgate keys create` makes one.", ExitCode.REFUSED)
    return principal


async def _holder(app: "App", credential: str) -> "Principal | None":
    """Who holds a key or token: the same look-up as over HTTP."""
    return await app.credentials.holder(credential)


async def _end_on_signal(app: "App | None", *, task_status: "TaskStatus[None]") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        task_status.started()
        async for _ in received:
            if app is not None:
                await app.store_pending()
            # A thread that works, or reads, cannot be interrupted, so nothing is awaited.
            os._exit(0)
