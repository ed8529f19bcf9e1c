"""MCP messages over 64 KiB: which there may be.

The SDK validates every value of a message, and nobody else is answered meanwhile. Only the
arguments of a tool are taken as they are. So a message that needs no room gets none, and in the
others many values are arguments.
"""

from typing import Any, cast

from toolgate.gate.errors import TooLarge
from toolgate.transports.asgi import FEW, LARGE, few_values

METHODS = ("tools/call", "prompts/get", "resources/read", "completion/complete")
"""Those that take something of any size."""
ONLY_THESE = (
    f"A message over {LARGE} bytes is a {', '.join(METHODS[:-1])} or {METHODS[-1]}, or answers a "
    "request of the server. Send less."
)
TOO_MANY = (
    f"A message over {LARGE} bytes has at most {FEW} values apart from the arguments of a tool. "
    "Send fewer."
)


def refusal_of_large(message: Any) -> TooLarge | None:
    """Why a message of this size is not taken; what is no message is refused elsewhere."""
    if isinstance(message, dict):
        given = cast("dict[str, Any]", message)
        if "method" in given and given["method"] not in METHODS:
            return TooLarge(ONLY_THESE)
        if few_values(_without_arguments(given)) is None:
            return TooLarge(TOO_MANY)
    return None


def _without_arguments(message: dict[str, Any]) -> dict[str, Any]:
    match message:
        case {"method": "tools/call", "params": {"arguments": _, **others}}:
            return {**message, "params": others}
        case _:
            return message
