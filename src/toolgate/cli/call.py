"""`toolgate call`: one call through the gate, in this process."""

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import environment
from toolgate.cli.arguments import is_file_argument, read_arguments
from toolgate.cli.diffs import note_diff
from toolgate.cli.logs import log_tracebacks
from toolgate.cli.options import ConfigFile, DataFolder, command_settings
from toolgate.cli.output import json_for_terminal, note, on_terminal
from toolgate.cli.principals import As, principal_named
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.progress import progress_line
from toolgate.cli.saved_files import check_place, save_attachment
from toolgate.cli.tools import hint_for

if TYPE_CHECKING:
    from toolgate.app import App
    from toolgate.gate.outcomes import Outcome
    from toolgate.gate.principal import Principal
    from toolgate.settings import Settings

ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Arguments; values are JSON or plain text, and @FILE for a file in base64.",
    ),
]
JsonText = Annotated[
    str | None,
    typer.Option("--json", metavar="JSON", help="All arguments as JSON; - reads them from stdin."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Perform every check and print the result, but store nothing."),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Where to write an attachment: a file, a folder (as attachment-NAME), or - for "
        "stdout. Otherwise it is base64 in the JSON of a pipe, and only described on a terminal.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite the file where an attachment goes.")
]

NAMES_FILE = re.compile(r"\A[^=]+=@")
"""How other programs are told to read a file."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The call as it was typed."""

    tool: str
    pairs: list[str]
    json_text: str | None
    dry_run: bool
    save: bool
    principal: str


def call(
    ctx: typer.Context,
    *,
    name: ToolName,
    pairs: Pairs = None,
    json_text: JsonText = None,
    dry_run: DryRun = False,
    save: Save = None,
    force: Force = False,
    principal: As = "admin",
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Call a tool and print its result, or an error, as JSON.

    Exit codes: 0 ok, 1 the tool failed or handed over nothing to save, 2 wrong usage (such as
    unknown tools, wrong arguments, or --save where a tool has no attachments), 3 refused.
    """
    if save is not None:
        check_place(save, dry_run=dry_run)
    settings = command_settings(ctx, config, data)
    if settings.log.level == "debug":
        log_tracebacks()
    options = CallOptions(name, pairs or [], json_text, dry_run, save is not None, principal)
    outcome, code = environment.run_async(lambda: _call(settings, options))
    if outcome.attached is None or save_attachment(outcome, save, force=force):
        _print(outcome)
    if save and outcome.attached is None and code is ExitCode.OK:
        note(f"Nothing was saved: {name} handed over no attachment this time.")
        code = ExitCode.FAILED
    if dry_run:
        if outcome.diff is not None:
            note_diff(outcome.diff)
        note("dry run: nothing was stored")
    raise typer.Exit(code)


async def _call(settings: "Settings", options: CallOptions) -> "tuple[Outcome, ExitCode]":
    from toolgate.app import opened
    from toolgate.gate.calls import Call

    async with opened(settings, existing=True) as app:
        tool = app.gate.catalogue.find(options.tool)
        schema = tool.input_schema if tool else {}
        who = await principal_named(options.principal, app.keys)
        allowed = tool is not None and app.gate.policy.decide(who, tool).allowed
        if options.save and tool and allowed and not tool.attachment_field:
            raise Stop(f"{tool.name} hands over no attachment. Leave out --save.")
        with progress_line(options.tool) as report:
            outcome = await app.gate.execute(
                Call(
                    tool=options.tool,
                    arguments=read_arguments(options.pairs, options.json_text, schema),
                    principal=who,
                    request_id=secrets.token_hex(12),
                    transport="cli",
                    dry_run=options.dry_run,
                    report=report,
                )
            )
        return outcome, _exit_code(app, outcome, who, options)


def _exit_code(app: "App", outcome: "Outcome", who: "Principal", options: CallOptions) -> ExitCode:
    name, principal = options.tool, options.principal
    from toolgate.gate.errors import Forbidden, InvalidArguments, Unauthenticated, UnknownTool

    match outcome.error:
        case None:
            return ExitCode.OK
        case Forbidden() | Unauthenticated():
            return ExitCode.REFUSED
        case UnknownTool() if app.gate.catalogue.find(name):
            step = f"`toolgate why {principal} {name}` says why"
            note(f"The tool exists, but not for {principal}: {step}.")
            return ExitCode.REFUSED
        case UnknownTool():
            decide = app.gate.policy.decide
            decided = [(tool, decide(who, tool)) for tool in app.gate.catalogue]
            known = [tool for tool, decision in decided if decision.visible or decision.off]
            note(hint_for(name, known, app.settings))
            return ExitCode.USAGE
        case InvalidArguments():
            if files := _unread_files(app, options):
                key = files[0].partition("=")[0]
                note(f'@ reads a file only where base64 is wanted. Write {key}="$(cat FILE)".')
            return ExitCode.USAGE
        case _:
            return ExitCode.FAILED


def _unread_files(app: "App", options: CallOptions) -> list[str]:
    """Arguments that name a file where none is read."""
    tool = app.gate.catalogue.find(options.tool)
    schema = tool.input_schema if tool else {}
    named = [one for one in options.pairs if NAMES_FILE.search(one)]
    return [one for one in named if not is_file_argument(schema, one.partition("=")[0])]


def _print(outcome: "Outcome") -> None:
    """The pack's own words: byte for byte in a pipe, laid out on a terminal."""
    if not on_terminal():
        typer.echo(outcome.raw)
        return
    from rich.console import Console
    from rich.highlighter import JSONHighlighter

    shown = JSONHighlighter()(json_for_terminal(outcome.body))
    Console(soft_wrap=True).print(shown)
