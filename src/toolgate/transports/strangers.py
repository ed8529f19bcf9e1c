"""What is refused to callers we do not know: counted against their peer, and audited."""

from toolgate.gate.errors import GateError
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.principal import Kind, Principal
from toolgate.transports.asgi import REQUEST_ID, Scope


def refuse_stranger(gate: Gate, scope: Scope, error: GateError, rule: str, peer: str) -> GateError:
    """Audit a refusal; what to answer: the error, or past the limit that there were too many."""
    call = Call(
        tool=scope["path"],
        arguments=None,
        principal=Principal(kind=Kind.ANONYMOUS, id=f"peer:{peer}"),
        request_id=scope[REQUEST_ID],
        transport="http",
    )
    return gate.refuse(call, error, rule).error or error
