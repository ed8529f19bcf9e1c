"""What would become of a call, without making it: the same stages, up to the handler."""

from dataclasses import dataclass
from enum import StrEnum

from toolgate.gate.calls import Call
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    InvalidArguments,
    NotFound,
    TooLarge,
    ToolDisabled,
)
from toolgate.gate.pipeline import Gate, prepare
from toolgate.gate.policy import Decision
from toolgate.gate.scope import OUT_OF_SCOPE


class Verdict(StrEnum):
    """What would become of a call."""

    ALLOWED = "allowed"
    """Its handler would run."""
    REFUSED = "refused"
    """The caller sees the tool, but may not call it, or not with these arguments."""
    HIDDEN = "hidden"
    """There is no such tool for this caller."""
    DISABLED = "disabled"
    """An operator has switched the tool off while servers run; the caller is told so."""
    NOT_FOUND = "not found"
    """The arguments name an id that the caller is not bound to."""
    INVALID = "invalid"
    """The arguments break a rule of the schema, or are too large."""
    FAILED = "failed"
    """Something else fails before the handler would run."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would become of a call, and why."""

    verdict: Verdict
    rule: str
    """The rule that decides, as the audit would name it."""
    message: str | None = None
    """What the caller is told, where a rule or the tool says something."""


def explain_decision(decision: Decision, tool: AnyTool) -> Explanation:
    """What the rules alone say, whatever the arguments are."""
    if decision.off:
        return Explanation(Verdict.DISABLED, decision.rule, ToolDisabled(tool.name).message)
    if decision.allowed:
        verdict = Verdict.ALLOWED
    else:
        verdict = Verdict.REFUSED if decision.visible else Verdict.HIDDEN
    return Explanation(verdict, decision.rule, decision.message)


async def explain_call(gate: Gate, call: Call, tool: AnyTool) -> Explanation:
    """What would become of a call with these arguments; nothing is stored, nothing is audited."""
    decision = gate.policy.decide(call.principal, tool)
    if decision.allowed:
        try:
            await prepare(call, tool)
        except GateError as error:
            return Explanation(_verdict(error), error.rule or decision.rule, error.message)
    return explain_decision(decision, tool)


def _verdict(error: GateError) -> Verdict:
    if error.rule == OUT_OF_SCOPE:
        return Verdict.NOT_FOUND
    match error:
        case InvalidArguments() | TooLarge():
            return Verdict.INVALID
        case Forbidden():
            return Verdict.REFUSED
        case NotFound():
            return Verdict.NOT_FOUND
        case _:
            return Verdict.FAILED
