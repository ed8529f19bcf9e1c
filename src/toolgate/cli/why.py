"""`toolgate why`: would it be allowed, and which rule decides."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import definitions, failure, say, say_json, success
from toolgate.cli.principals import FORMS, principal_named
from toolgate.cli.problems import ExitCode
from toolgate.cli.tools import tool_named

if TYPE_CHECKING:
    from toolgate.gate.policy import Decision
    from toolgate.settings import Settings

Who = Annotated[str, typer.Argument(metavar="PRINCIPAL", help=f"The caller: {FORMS}.")]
ToolName = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")]
NO_TEXT = {
    "no-rule-permits": "No rule permits it, and what is not permitted is denied.",
    "policy-error": "A rule could not be evaluated, so the answer is no.",
}


def why(
    ctx: typer.Context,
    *,
    principal: Who,
    tool: ToolName,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show whether a principal may call a tool, and which rule decides.

    The exit code is 0 if it may, 3 if not.
    """
    settings = command_settings(ctx, config, data)
    decision, only, failures = environment.run_async(lambda: _decision(settings, principal, tool))
    if as_json:
        say_json(
            {
                "principal": principal,
                "tool": tool,
                "visible": decision.visible,
                "allowed": decision.allowed,
                "rule": decision.rule,
                "says": decision.message,
                "only": only,
                "failures": failures,
            }
        )
    else:
        _explain(principal, tool, decision, _rule_text(settings, decision.rule))
        for argument, own in only.items():
            say(f"{principal} is bound: with another {argument} than {own} nothing is found.")
        for problem in failures:
            say(f"{failure('Failed:')} {problem}.")
    raise typer.Exit(ExitCode.OK if decision.allowed else ExitCode.REFUSED)


async def _decision(
    settings: "Settings", principal: str, tool: str
) -> "tuple[Decision, dict[str, str], list[str]]":
    from toolgate.app import opened

    async with opened(settings, existing=True) as app:
        who = await principal_named(principal, app.keys)
        found = tool_named(app.gate.catalogue, tool)
        decision = app.gate.policy.decide(who, found)
        only = found.scope.only(who) if found.scope and decision.allowed else {}
        return decision, only, list(app.gate.policy.failures)


def _explain(principal: str, tool: str, decision: "Decision", text: str | None) -> None:
    if decision.allowed:
        say(f"{success('Allowed:')} {principal} may call {tool}.")
    elif decision.visible:
        say(f"{failure('Refused:')} {principal} sees {tool}, but may not call it.")
    else:
        say(f"{failure('Hidden:')} for {principal} there is no tool {tool}.")
    shown = {"rule": decision.rule}
    if says := decision.message or NO_TEXT.get(decision.rule):
        shown["says"] = says
    definitions(shown)
    if text:
        say()
        say("\n".join(f"    {line}" for line in text.splitlines()))


def _rule_text(settings: "Settings", rule: str) -> str | None:
    """The rule as its author wrote it."""
    from toolgate.app import offers_of
    from toolgate.gate.rules import rules_in, shipped_rules

    own = rules_in(settings.policy.folder) if settings.policy.folder else {}
    begins = re.compile(rf'^@id\("{re.escape(rule)}"\).*?;[ \t]*$', re.DOTALL | re.MULTILINE)
    for text in (shipped_rules(offers_of(settings)) | own).values():
        if found := begins.search(text):
            return found.group()
    return None
