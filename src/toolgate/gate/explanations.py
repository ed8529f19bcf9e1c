"""What would become of a call, without making it: the same stages, up to the handler."""

from dataclasses import dataclass
from enum import StrEnum

from toolgate.gate.arguments import parse
from toolgate.gate.calls import Call
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import Forbidden, GateError, InvalidArguments
from toolgate.gate.pipeline import Gate, check_access, narrow_to_scope
from toolgate.gate.policy import Decision


class Verdict(StrEnum):
    """What would become of a call."""

    ALLOWED = "allowed"
    """Its handler would run."""
    REFUSED = "refused"
    """The caller sees the tool, but may not call it, or not with these arguments."""
    HIDDEN = "hidden"
    """There is no such tool for this caller."""
    NOT_FOUND = "not found"
    """The arguments name an id that the caller is not bound to."""
    INVALID = "invalid"
    """The arguments break a rule of the schema."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would become of a call, and why."""

    verdict: Verdict
    rule: str
    """The rule that decides; for invalid arguments the one that lets the caller get there."""
    message: str | None = None
    """What the caller is told, where a rule or the tool says something."""


def explain_decision(decision: Decision) -> Explanation:
    """What the rules alone say, whatever the arguments are."""
    if decision.allowed:
        verdict = Verdict.ALLOWED
    else:
        verdict = Verdict.REFUSED if decision.visible else Verdict.HIDDEN
    return Explanation(verdict, decision.rule, decision.message)


async def explain_call(gate: Gate, call: Call, tool: AnyTool) -> Explanation:
    """What would become of a call with these arguments; nothing is stored, nothing is audited."""
    decision = gate.policy.decide(call.principal, tool)
    if not decision.allowed:
        return explain_decision(decision)
    try:
        args = parse(tool, call.arguments)
        if tool.scope is not None:
            args = narrow_to_scope(tool.scope, args, call)
        await check_access(tool, args, call)
    except InvalidArguments as error:
        return Explanation(Verdict.INVALID, decision.rule, error.message)
    except Forbidden as error:
        return Explanation(Verdict.REFUSED, call.refused_by or decision.rule, error.message)
    except GateError as error:
        return Explanation(Verdict.NOT_FOUND, call.refused_by or decision.rule, error.message)
    return explain_decision(decision)
