"""The entry point: all commands, and what becomes of an error."""

import logging
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from toolgate.cli import (
    audit,
    backup,
    call,
    connect,
    db,
    doctor,
    extend,
    grants,
    init,
    keys,
    logs,
    packs,
    policy,
    restore,
    serve,
    stdio,
    switch,
    tools,
    users,
    why,
    workflows,
)
from toolgate.cli.options import help_when_alone
from toolgate.cli.output import failure, note, on_terminal, say, say_json
from toolgate.cli.pack_commands import PackCommandGroup
from toolgate.cli.problems import ExitCode, explain, split_advice
from toolgate.cli.streams import READER_GONE, flush_streams, open_closed_streams

logger = logging.getLogger(__name__)

INTERRUPTED = 130
Version = Annotated[bool, typer.Option("--version", help="Print the version and exit.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code."""
    open_closed_streams()
    sys.exit(flush_streams(run(arguments)))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors become a sentence on standard error, or JSON where it was asked."""
    logs.log_defects_only()
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = commands()(words, prog_name="toolgate", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return READER_GONE
    except Exception as error:
        return _report(error, as_json=_wants_json(words))
    return code if isinstance(code, int) else ExitCode.OK


def commands() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        cls=PackCommandGroup,
        help="One governed door between AI agents and an application's backend.",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if on_terminal() else None,
    )
    app.callback(invoke_without_command=True)(_root)
    app.command("serve")(serve.serve)
    app.command("mcp")(stdio.mcp)
    app.command("init")(init.init)
    app.add_typer(tools.group(), name="tools")
    app.command("packs")(packs.packs)
    app.command("call")(call.call)
    app.command("why")(why.why)
    app.add_typer(policy.group(), name="policy")
    app.add_typer(keys.group(), name="keys")
    app.add_typer(users.group(), name="users")
    app.add_typer(grants.group(), name="grants")
    app.add_typer(switch.group(), name="switch")
    app.add_typer(audit.group(), name="audit")
    app.command("connect")(connect.connect)
    app.command("doctor")(doctor.doctor)
    app.add_typer(db.group(), name="db")
    app.command("backup")(backup.backup)
    app.command("restore")(restore.restore)
    app.add_typer(workflows.group(), name="workflows")
    app.add_typer(extend.group(), name="extend")
    return app


def _root(ctx: typer.Context, version: Version = False) -> None:
    if version:
        # Imported here: it reads package metadata from disk.
        from importlib.metadata import version as version_of

        say(f"toolgate {version_of('toolgate')}")
        raise typer.Exit
    help_when_alone(ctx)


def _wants_json(words: Sequence[str]) -> bool:
    """Whether JSON was asked for; what `call` prints always is."""
    return "--json" in words or words[:1] == ["call"]


def _report(error: Exception, *, as_json: bool) -> int:
    explanation = explain(error)
    if explanation is None:
        logger.debug("defect", exc_info=error)
        kind = type(error).__name__
        explanation = f"Something went wrong on our side ({kind}: {error}).", ExitCode.FAILED
    sentence, code = explanation
    if as_json:
        message, hint = split_advice(sentence)
        say_json({"error": {"message": message} | ({"hint": hint} if hint else {})})
    else:
        note(f"{failure('Error:')} {sentence}")
    return code
