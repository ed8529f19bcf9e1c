"""`toolgate why`: would it be allowed, and which rule decides."""

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import definitions, failure, say, say_json, success
from toolgate.cli.policy import explained
from toolgate.cli.principals import FORMS, principal_named
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.switch import cause_in_words
from toolgate.cli.tools import tool_named

if TYPE_CHECKING:
    from toolgate.app import App
    from toolgate.gate.catalogue import AnyTool
    from toolgate.gate.explanations import Explanation
    from toolgate.settings import Settings

Who = Annotated[str, typer.Argument(metavar="PRINCIPAL", help=f"The caller: {FORMS}.")]
ToolName = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")]
Arguments = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help="Arguments: would a call with these be allowed?"),
]
NO_TEXT = {
    "no-rule-permits": "No rule permits it, and what is not permitted is denied.",
    "policy-error": "A rule could not be evaluated, so the answer is no.",
    "no-access-rule-allows": "No access rule allows it: `toolgate call operator.access_rule.list`.",
}
EXAMPLE = """Write it like --args '{"task_id": "…"}'."""
OUT_OF_SCOPE = "out-of-scope"


def why(
    ctx: typer.Context,
    *,
    principal: Who,
    tool: ToolName,
    arguments: Arguments = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show whether a principal may call a tool, and which rule decides.

    The exit code is 0 if it may, 3 if not.
    """
    settings = command_settings(ctx, config, data)
    parsed = None if arguments is None else _parse(arguments)
    answer = environment.run_async(lambda: _answer(settings, principal, tool, parsed))
    verdict = answer.explanation.verdict
    allowed = verdict == "allowed"
    if as_json:
        say_json(
            {
                "principal": principal,
                "tool": tool,
                "visible": verdict not in ("hidden", "disabled"),
                "allowed": allowed,
                "verdict": verdict,
                "rule": answer.explanation.rule,
                "says": answer.explanation.message,
                "bound": answer.bound,
                "only": answer.only,
                "notes": answer.notes,
                "failures": answer.failures,
                "access_rule": answer.access_rule,
            }
        )
    else:
        _explain(principal, tool, answer.explanation, with_arguments=parsed is not None)
        if answer.access_rule:
            definitions(answer.access_rule)
        if text := _rule_text(settings, answer.explanation.rule):
            say("\n" + "\n".join(f"    {line}" for line in text.splitlines()))
        if allowed and parsed is None:
            _explain_binding(principal, tool, answer)
        for note in answer.notes:
            say(note)
        for problem in answer.failures:
            say(f"{failure('Failed:')} {problem}.")
    raise typer.Exit(ExitCode.OK if allowed else ExitCode.REFUSED)


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is to be said about a principal and a tool."""

    explanation: "Explanation"
    bound: dict[str, str]
    """The ids that the principal is bound to, by kind."""
    only: dict[str, str]
    """The arguments for which only one of these ids is good."""
    notes: list[str]
    """What else decides."""
    failures: list[str]
    access_rule: dict[str, str] | None
    """What the rule of a pack says that decides, where one does."""


def _parse(arguments: str) -> dict[str, Any]:
    try:
        parsed = json.loads(arguments)
    except ValueError as problem:
        raise Stop(f"--args is not JSON: {problem}. {EXAMPLE}") from None
    if not isinstance(parsed, dict):
        raise Stop(f"--args must be a JSON object. {EXAMPLE}")
    return cast("dict[str, Any]", parsed)


async def _answer(
    settings: "Settings", principal: str, name: str, arguments: dict[str, Any] | None
) -> Answer:
    from toolgate.app import opened
    from toolgate.gate.policy import SWITCHED_OFF

    async with opened(settings, existing=True) as app:
        if app.gate.catalogue.find(principal) and not app.gate.catalogue.find(name):
            raise Stop(f"The principal comes first: `toolgate why {name} {principal}`.")
        who = await principal_named(principal, app.keys)
        tool = tool_named(app.gate.catalogue, name, settings)
        explanation = await explained(app, who, tool, arguments)
        only = tool.scope.only(who) if tool.scope else {}
        notes = _notes(tool, explanation, arguments)
        live = app.gate.switches.known
        if explanation.rule == SWITCHED_OFF and (
            cause := cause_in_words(settings, live, tool.name, tool)
        ):
            notes.append(f"It is switched off {cause}.")
        failures = list(app.gate.policy.failures)
        said = await _access_rule(app, tool, explanation.rule)
        return Answer(explanation, who.scope, only, notes, failures, said)


async def _access_rule(app: "App", tool: "AnyTool", rule: str) -> dict[str, str] | None:
    """What a rule of the tool's pack says, if one decides."""
    from toolgate.app import offers_of

    offers = [one for one in offers_of(app.settings) if one.pack.name == tool.pack.name]
    if not offers or offers[0].access_rule is None:
        return None
    return await offers[0].access_rule(app.worlds[tool.pack.name].world, rule)


def _notes(
    tool: "AnyTool", explanation: "Explanation", arguments: dict[str, Any] | None
) -> list[str]:
    """What nobody was asked, where all that was asked allow it."""
    if explanation.verdict != "allowed":
        return []
    if arguments is None:
        access = f"Pack {tool.pack.name} has access rules, which look at the arguments, too"
        return [f"{access}: ask them with --args JSON."] if tool.access else []
    return [
        "The tool itself may still refuse: it looks up whether what the arguments name exists for "
        "this caller, and whether the caller's role there lets it do this."
    ]


def _explain_binding(principal: str, tool: str, answer: Answer) -> None:
    for argument, own in answer.only.items():
        say(f"{principal} is bound: with another {argument} than {own} nothing is found.")
    if answer.bound and not answer.only:
        ids = ", ".join(f"{kind} {one}" for kind, one in answer.bound.items())
        *others, last = answer.bound
        kinds = f"{', '.join(others)} or {last}" if others else last
        say(f"{principal} is bound to {ids}, but no argument of {tool} is bound to a {kinds}.")


def _explain(
    principal: str, tool: str, explanation: "Explanation", *, with_arguments: bool
) -> None:
    verdict, so = explanation.verdict, " with these arguments" if with_arguments else ""
    if verdict == "allowed":
        by, unless = "Allowed:", ""
        if with_arguments:
            by, unless = "Allowed by the rules:", ", unless the tool itself refuses"
        say(f"{success(by)} {principal} may call {tool}{so}{unless}.")
    else:
        bound = explanation.rule == OUT_OF_SCOPE
        sentences = {
            "refused": f"{principal} sees {tool}, but may not call it{so}",
            "hidden": f"for {principal} there is no tool {tool}",
            "disabled": f"{tool} is switched off, and {principal} is told so",
            "not found": f"{principal} is bound to other ids than these"
            if bound
            else f"{principal} finds nothing{so}",
            "invalid": f"{principal} may call {tool}, but not{so}",
            "failed": f"a call of {tool}{so} would fail",
        }
        say(f"{failure(f'{verdict.capitalize()}:')} {sentences[verdict]}.")
    lines = {"rule": explanation.rule}
    if says := explanation.message or NO_TEXT.get(explanation.rule):
        lines["says"] = says
    definitions(lines)


def _rule_text(settings: "Settings", rule: str) -> str | None:
    """The rule as its author wrote it."""
    from toolgate.app import offers_of
    from toolgate.gate.rules import rules_in, rules_of, shipped_rules

    own = rules_in(settings.policy.folder) if settings.policy.folder else {}
    every = rules_of(shipped_rules(offers_of(settings)) | own)
    called = re.compile(rf'^@id\("{re.escape(rule)}"\)', re.MULTILINE)
    return next((one.text for one in every if one.name == rule or called.search(one.text)), None)
