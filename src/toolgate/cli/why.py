"""`toolgate why`: would it be allowed, and which rule decides."""

import re
from dataclasses import dataclass
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
    answer = environment.run_async(lambda: _decide(settings, principal, tool))
    decision = answer.decision
    if as_json:
        say_json(
            {
                "principal": principal,
                "tool": tool,
                "visible": decision.visible,
                "allowed": decision.allowed,
                "rule": decision.rule,
                "says": decision.message,
                "bound": answer.bound,
                "only": answer.only,
                "failures": answer.failures,
            }
        )
    else:
        _explain(principal, tool, decision, _rule_text(settings, decision.rule))
        if decision.allowed:
            _explain_binding(principal, tool, answer)
        for problem in answer.failures:
            say(f"{failure('Failed:')} {problem}.")
    raise typer.Exit(ExitCode.OK if decision.allowed else ExitCode.REFUSED)


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is to be said about a principal and a tool."""

    decision: "Decision"
    bound: dict[str, str]
    """The ids that the principal is bound to, by kind."""
    only: dict[str, str]
    """The arguments for which only one of these ids is good."""
    failures: list[str]


async def _decide(settings: "Settings", principal: str, name: str) -> Answer:
    from toolgate.app import opened

    async with opened(settings, existing=True) as app:
        who = await principal_named(principal, app.keys)
        tool = tool_named(app.gate.catalogue, name)
        decision = app.gate.policy.decide(who, tool)
        only = tool.scope.only(who) if tool.scope and decision.allowed else {}
        return Answer(decision, who.scope, only, list(app.gate.policy.failures))


def _explain_binding(principal: str, tool: str, answer: Answer) -> None:
    for argument, own in answer.only.items():
        say(f"{principal} is bound: with another {argument} than {own} nothing is found.")
    if answer.bound and not answer.only:
        ids = ", ".join(f"{kind} {one}" for kind, one in answer.bound.items())
        *others, last = answer.bound
        kinds = f"{', '.join(others)} or {last}" if others else last
        say(f"{principal} is bound to {ids}, but no argument of {tool} is bound to a {kinds}.")


def _explain(principal: str, tool: str, decision: "Decision", text: str | None) -> None:
    if decision.allowed:
        say(f"{success('Allowed:')} {principal} may call {tool}.")
    elif decision.visible:
        say(f"{failure('Refused:')} {principal} sees {tool}, but may not call it.")
    else:
        say(f"{failure('Hidden:')} for {principal} there is no tool {tool}.")
    lines = {"rule": decision.rule}
    if says := decision.message or NO_TEXT.get(decision.rule):
        lines["says"] = says
    definitions(lines)
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
        if match := begins.search(text):
            return match.group()
    return None
