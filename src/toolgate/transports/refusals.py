"""Requests that never become a call: counted, and audited where they are refused."""

from toolgate.gate.calls import Call
from toolgate.gate.errors import GateError
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import UNKNOWN_ACTOR, Actor, Kind, Principal
from toolgate.transports.asgi import REQUEST_ID, Scope

CREDENTIALS_REQUIRED = "credentials-required"
UNREADABLE = "unreadable"


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
    call = Call(
        tool=scope["path"],
        arguments=None,
        principal=Principal(kind=Kind.ANONYMOUS, id=f"peer:{peer}", **actor._asdict()),
        request_id=scope[REQUEST_ID],
        transport="http",
    )
    return gate.refuse(call, error, rule).error or error


def refuse_unreadable(
    gate: Gate, error: GateError, *, principal: Principal, request_id: str, transport: str
) -> GateError:
    """The same for a caller we know, whose message names no tool that could be read."""
    call = Call(
        tool=f"({UNREADABLE})",
        arguments=None,
        principal=principal,
        request_id=request_id,
        transport=transport,
    )
    return gate.refuse(call, error, UNREADABLE).error or error


async def count_list(
    gate: Gate, what: str, *, principal: Principal, request_id: str, transport: str
) -> GateError | None:
    """Count a list as a call of its caller; what to answer instead where it is one too many."""
    try:
        if waiting := gate.limits.admit(principal, what):
            await waiting
    except GateError as error:
        return refuse_list(
            gate, error, what, principal=principal, request_id=request_id, transport=transport
        )
    return None


def refuse_list(
    gate: Gate,
    error: GateError,
    what: str,
    *,
    principal: Principal,
    request_id: str,
    transport: str,
) -> GateError:
    """Audit a list that was not counted, and so is not answered."""
    call = Call(
        tool=what,
        arguments=None,
        principal=principal,
        request_id=request_id,
        transport=transport,
    )
    gate.note_uncounted(call, error)
    return error
