"""What is refused to callers we do not know is audited, up to their common rate limit."""

from toolgate.gate.errors import GateError
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.principal import ANONYMOUS
from toolgate.transports.asgi import REQUEST_ID, Scope


async def note_refusal(gate: Gate, scope: Scope, error: GateError, rule: str) -> None:
    """Audit a refusal, unless strangers were refused too often: they must not fill the audit."""
    call = Call(
        tool=scope["path"],
        arguments=None,
        principal=ANONYMOUS,
        request_id=scope[REQUEST_ID],
        transport="http",
    )
    try:
        await gate.limits.admit(ANONYMOUS, call.tool)
    except GateError:
        return
    gate.refuse(call, error, rule)
