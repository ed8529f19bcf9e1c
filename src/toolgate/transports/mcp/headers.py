"""What the headers of a request to the MCP endpoint say of it."""

from typing import Any, NamedTuple, cast

from toolgate.gate.errors import printable
from toolgate.transports.asgi import WHITE_SPACE, Scope, dry_run_of
from toolgate.transports.jsonrpc import failure, id_of
from toolgate.transports.mcp.plain import HANDSHAKE, MODERN, PROTOCOL

ROUTING = {b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}
JSON_TYPE = b"application/json"
UNSUPPORTED_VERSION = -32022


class Routing(NamedTuple):
    """What a request's headers say of it."""

    fits: bool
    """The media types are right, no routing header stands twice, and there is no session."""
    is_json: bool
    """Whether the body is said to be JSON, as far as the SDK asks."""
    protocol: str | None
    method: str | None
    name: str | None
    dry_run: bool


def read_routing(scope: Scope) -> Routing:
    """What the headers say."""
    found: dict[bytes, str] = {}
    accept = content = b""
    twice = False
    for key, value in scope["headers"]:
        if key in ROUTING:
            twice = twice or key in found
            found[key] = value.decode("latin-1").strip(WHITE_SPACE)
        elif key == b"accept":
            accept += value
        elif key == b"content-type":
            content = value
    both = JSON_TYPE in accept and b"text/event-stream" in accept
    exactly = content.partition(b";")[0].strip() == JSON_TYPE
    return Routing(
        fits=both and exactly and not twice and b"mcp-session-id" not in found,
        is_json=content.strip().lower().startswith(JSON_TYPE),
        protocol=found.get(b"mcp-protocol-version"),
        method=found.get(b"mcp-method"),
        name=found.get(b"mcp-name"),
        dry_run=dry_run_of(scope),
    )


def unsupported_version(routing: Routing, message: Any) -> dict[str, Any] | None:
    """The answer to a request of a protocol that we do not speak.

    Where the body names another than the header, that is what is wrong, and the SDK says so.
    """
    wanted = routing.protocol
    if wanted is None or wanted == MODERN or wanted in HANDSHAKE:
        return None
    params = cast("dict[str, Any]", message).get("params")
    meta: Any = cast("dict[str, Any]", params).get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and cast("dict[str, Any]", meta).get(PROTOCOL, wanted) != wanted:
        return None
    text = (
        f"Unsupported protocol version: {printable(wanted)}. Set MCP-Protocol-Version to {MODERN}, "
        f"or to the one that initialize agreed on: {', '.join(HANDSHAKE)}."
    )
    data = {"supported": [MODERN], "requested": printable(wanted)}
    return failure(id_of(message), UNSUPPORTED_VERSION, text, data)
