"""`toolgate serve`: the HTTP server."""

import shlex
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate import logs
from toolgate.cli import environment
from toolgate.cli.clients import add_to_claude_code
from toolgate.cli.keys import audit_note
from toolgate.cli.options import ConfigFile, DataFolder, command_settings
from toolgate.cli.output import definitions, note, on_terminal, say, strong
from toolgate.cli.problems import ExitCode, Stop
from toolgate.stop_signals import StopSignals

if TYPE_CHECKING:
    import asyncio

    from toolgate.app import App
    from toolgate.sections import ServerSettings
    from toolgate.settings import Settings

Host = Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")]
Port = Annotated[
    int | None, typer.Option(help="Port to listen on; default: 8765; 0 picks a free one.")
]
Demo = Annotated[bool, typer.Option("--demo", help="Load demo data into packs that are empty.")]
Workers = Annotated[int | None, typer.Option(help="Number of server processes; default: 1.")]
Https = Annotated[
    bool, typer.Option("--https", help="Serve HTTPS with a locally created certificate.")
]
Reload = Annotated[
    bool, typer.Option("--reload", help="Reload your own tools when a file changes.")
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Refuse every write by every tool.")]

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 (no binding here)
LOOPBACK = ("localhost", "127.", "::1")


@dataclass(frozen=True, slots=True)
class StartReport:
    """What a start left behind for its greeting."""

    key: str | None = None
    """The first admin key, if it was just made."""
    loaded: int | None = None
    """How many demo records were stored; None when none were wanted or possible."""
    own: int = 0
    """How many tools of the user's own there are."""
    replaced: tuple[str, ...] = ()
    """Those of them that take a built-in tool's place."""
    example: str = ""
    """What to send to the tools, as arguments of curl: a call that succeeds here."""


def serve(
    ctx: typer.Context,
    *,
    host: Host = None,
    port: Port = None,
    demo: Demo = False,
    workers: Workers = None,
    read_only: ReadOnly = False,
    https: Https = False,
    reload: Reload = False,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Run the HTTP server: tools over HTTP, JSON-RPC and MCP.

    SIGTERM and Ctrl-C let running calls finish and store pending audit rows.
    """
    settings = command_settings(
        ctx,
        config,
        data,
        server__host=host,
        server__port=port,
        server__workers=workers,
        policy__read_only=read_only or None,
        server__https=https or None,
        extend__reload=reload or None,
    )
    if reload and not settings.extend.tools:
        raise Stop("--reload needs a file of your own tools (setting extend.tools).")
    logs.set_up(settings.log)
    signals = StopSignals()
    signals.install()
    with signals.held():  # the parsers that are tried drop what a handler raises
        connections = _connections(settings)
    bound = _bind(settings)
    prepared = environment.run_async(lambda: _prepare(settings, demo))
    _greet(settings, bound, prepared)
    from toolgate.http_server import run

    with signals.held():
        run(settings, bound, connections, signals)


def _bind(settings: "Settings") -> socket.socket:
    from toolgate.http_server import listen

    server = settings.server
    try:
        return listen(settings)
    except PermissionError:
        why = f"Port {server.port} needs more rights than this user has."
        raise Stop(f"{why} Choose one above 1023 with --port.") from None
    except socket.gaierror:
        raise Stop(f"There is no address {server.host!r} here. Choose one with --host.") from None
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        place = f"{server.host}:{server.port}"
        step = "Choose another with --port (0 picks a free one), or --host."
        raise Stop(f"Cannot listen on {place}: {why}. {step}") from None


def _connections(settings: "Settings") -> "type[asyncio.Protocol]":
    from toolgate.transports.connection.choice import NoConnections, connection_class

    try:
        return connection_class(known_heads=settings.server.known_heads)
    except NoConnections as problem:
        raise Stop(str(problem), ExitCode.FAILED) from None


def _certify(settings: "Settings") -> None:
    """Make sure of the certificate before anything is promised."""
    if not settings.server.https:
        return
    from toolgate.http_server import certificate_for

    if certificate_for(settings).other_ca:
        note("The local CA was made anew. Trust it again, and remove the old one.")


async def _prepare(settings: "Settings", demo: bool) -> StartReport:
    """Open everything once: a start that cannot work fails here, before anything is promised."""
    from toolgate.app import opened

    async with opened(settings) as app:
        loaded = await _load_demo(app) if demo else None
        own = len(app.own.offer.tools) if app.own else 0
        _certify(settings)  # before the key: what fails after it would lose it
        replaced, example = tuple(app.gate.catalogue.replaced), _example(app, demo)
        return StartReport(await _first_key(app), loaded, own, replaced, example)


async def _load_demo(app: "App") -> int | None:
    from toolgate.demo import NotForDemo, load_demo

    try:
        return sum((await load_demo(app)).values())
    except NotForDemo as refusal:
        note(str(refusal))
        return None


async def _first_key(app: "App") -> str | None:
    if app.settings.admin_key:
        return None
    new_key = await app.keys.create_first(audit_note("keys.create"))
    if new_key is None:
        return None
    if not on_terminal():
        try:
            _write_key(app.settings, new_key.key)
        except OSError:  # nobody would ever know it; the next start makes another
            await app.keys.revoke(new_key.id, audit_note("keys.revoke"))
            raise
    return new_key.key


def _write_key(settings: "Settings", key: str) -> None:
    from toolgate.data_folder import KEY_FILE, write_private

    write_private(settings.data / KEY_FILE, f"{key}\n")


def _greet(settings: "Settings", bound: socket.socket, report: StartReport) -> None:
    from importlib.metadata import version

    url = url_of(settings.server, bound.getsockname()[1])
    lines = {"URL": url, "MCP": f"{url}/mcp", "Data": f"{settings.data}{_demo_text(report)}"}
    if report.key:
        lines["Key"] = _key_text(settings, report.key)
    if settings.extend.tools:
        files = ", ".join(map(str, settings.extend.tools))
        lines["Tools"] = f"{files}  ({_own_tools_text(settings, report)})"
    if settings.policy.read_only:
        lines["Mode"] = "read-only: every write is refused"
    say(strong(f"toolgate {version('toolgate')}"))
    say()
    definitions(lines)
    _tell_trust(settings)
    more = "" if report.key else "; `toolgate keys create --role admin` makes another"
    say(f"\nCall a tool (TOOLGATE_KEY is your key{more}):")
    example = f"{url}/v1/tools{report.example}"
    say(f'  curl {_with_ca(settings)}{example} -H "Authorization: Bearer $TOOLGATE_KEY"')
    say("\nConnect Claude Code, which takes the key from the environment:")
    say(f"  {add_to_claude_code('toolgate', f'{url}/mcp')}")
    for name in report.replaced:
        note(replacement_warning(name))
    _warn_of_open_address(settings)
    sys.stdout.flush()


def _key_text(settings: "Settings", key: str) -> str:
    """Only a person sees the key itself: what is not a terminal may be a log that others read."""
    if on_terminal():
        return f"{strong(key)}  (admin; shown only now, keep it)"
    from toolgate.data_folder import KEY_FILE

    return (
        f"in {settings.data / KEY_FILE}  (admin; only its owner can read it; delete it once kept)"
    )


def url_of(server: "ServerSettings", port: int | None = None) -> str:
    """The address to type, also where the server listens on all of them."""
    name = EVERYWHERE.get(server.host, server.host)
    scheme = "https" if server.https else "http"
    host = f"[{name}]" if ":" in name else name
    return f"{scheme}://{host}:{server.port if port is None else port}"


def _with_ca(settings: "Settings") -> str:
    if not settings.server.https:
        return ""
    from toolgate.certificates import files_in

    return f"--cacert {shlex.quote(str(files_in(settings.data).ca))} "


def _tell_trust(settings: "Settings") -> None:
    if not settings.server.https:
        return
    from toolgate.certificates import files_in
    from toolgate.cli.trust import trust_command

    say("\nNobody trusts this certificate until you run this (it was not run):")
    say(f"  {trust_command(files_in(settings.data).ca)}")


def _own_tools_text(settings: "Settings", prepared: StartReport) -> str:
    count = "1 tool" if prepared.own == 1 else f"{prepared.own} tools"
    return f"{count} of your own{'; loaded again on change' if settings.extend.reload else ''}"


def replacement_warning(name: str) -> str:
    """What is said at start of an own tool with a built-in name."""
    return f"Your tool {name} replaces the built-in tool of its name."


def _demo_text(prepared: StartReport) -> str:
    if prepared.loaded is None:
        return ""
    return f"  ({prepared.loaded} demo records loaded)" if prepared.loaded else "  (demo)"


def _example(app: "App", demo: bool) -> str:
    """A read that an admin's key may do and that needs no data, except the demo's."""
    from toolgate.gate.principal import Role, of_role
    from toolgate.gate.tool import Effect

    visible = app.gate.visible(of_role(Role.ADMIN, "admin"))
    if demo and any(tool.name == "get_document" for tool in visible):
        return """/get_document -d '{"collection": "users", "document_id": "abc123"}'"""
    reads = [
        tool
        for tool in visible
        if tool.effect is Effect.READ
        and not tool.input_schema.get("required")
        and tool.scope is None
    ]
    # What is there for users may need one, which the first key has not.
    reads.sort(key=lambda tool: tool.role is Role.USER)
    return f"/{reads[0].name} -d '{{}}'" if reads else ""


def _warn_of_open_address(settings: "Settings") -> None:
    if settings.server.host.startswith(LOOPBACK):
        return
    names = ", ".join(settings.server.allowed_hosts)
    openly = "" if settings.server.https else ", without encryption"
    note(
        f"Other machines can reach this port{openly}. Requests are answered when "
        f"addressed to: {names} (setting server.allowed_hosts)."
    )
