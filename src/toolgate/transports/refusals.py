"""Requests that never become a call: counted, and audited where they are refused."""

from toolgate.gate.calls import Call
from toolgate.gate.errors import GateError, NotFound
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import UNKNOWN_ACTOR, Actor, Kind, Principal
from toolgate.transports.asgi import Scope, call_of

CREDENTIALS_REQUIRED = "credentials-required"
UNREADABLE = "unreadable"
UNREADABLE_TOOL = "(unreadable)"
"""What the audit says of a message that names no tool that could be read."""
NOTHING_THERE = (
    "There is nothing at this path. Try GET /v1/tools or GET /openapi.json. MCP is at /mcp."
)
"""One sentence for every path: one that is hidden from the caller is as good as none."""


def refuse_unauthenticated(
    gate: Gate,
    scope: Scope,
    error: GateError,
    rule: str,
    peer: str,
    *,
    actor: Actor = UNKNOWN_ACTOR,
) -> GateError:
    """What to answer a caller we do not know: the error, or past the limit that it was too many.

    `actor` is for the audit: what a secret that came along belongs to, or did once.
    """
    who = Principal(kind=Kind.ANONYMOUS, id=f"peer:{peer}", **actor._asdict())
    return gate.refuse(call_of(scope, scope["path"], principal=who), error, rule)


def refuse_unknown_path(gate: Gate, scope: Scope, tool: str, rule: str) -> GateError:
    """The same for a path where nothing is for this caller; `tool` and `rule` are for the audit."""
    return gate.refuse(call_of(scope, tool), NotFound(NOTHING_THERE), rule)


async def count_list(gate: Gate, call: Call) -> GateError | None:
    """Count a list as a call of its caller; what to answer instead where it is one too many."""
    try:
        if waiting := gate.limits.admit(call.principal, call.tool):
            await waiting
    except GateError as error:
        gate.note_uncounted(call, error)
        return error
    return None
