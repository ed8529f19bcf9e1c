"""Which requests need nothing of the SDK.

A `tools/call` or `tools/list` with every field exactly as the protocol wants it. What is odd in
any way is not plain: what is wrong with it is the SDK's to say (docs/decisions/0005).
"""

from typing import Any, NamedTuple, cast

MODERN = "2026-07-28"
LEGACY = frozenset({"2025-06-18", "2025-11-25"})
META = "io.modelcontextprotocol/"
PROTOCOL = f"{META}protocolVersion"
CAPABILITIES = f"{META}clientCapabilities"
CLIENT = f"{META}clientInfo"
METHODS = ("tools/call", "tools/list")  # not a set: anything may stand there, also a list
CALL_KEYS = frozenset({"name", "arguments", "_meta"})
LIST_KEYS = frozenset({"_meta"})


class Plain(NamedTuple):
    """A request that needs nothing of the SDK."""

    id: str | int
    method: str
    name: str
    """The tool; empty for a list."""
    arguments: Any
    meta: dict[str, Any]
    modern: bool


def plain_request(message: Any, protocol: str | None) -> Plain | None:
    """The request of a parsed message, if it is plain in this protocol."""
    request: Any = message
    if not isinstance(message, dict):
        return None
    id, method = request.get("id"), request.get("method")
    params = request.get("params", {})
    if request.get("jsonrpc") != "2.0" or not isinstance(id, str | int) or isinstance(id, bool):
        return None
    if not isinstance(params, dict) or method not in METHODS:
        return None
    return _fitting(id, method, request.get("params", {}), protocol)


def _fitting(
    id: str | int, method: str, params: dict[str, Any], protocol: str | None
) -> Plain | None:
    name = params.get("name", "")
    meta: Any = params.get("_meta", {})
    given: Any = meta
    arguments = params.get("arguments")
    if not isinstance(name, str) or not isinstance(meta, dict):
        return None
    if not isinstance(arguments, dict | None):
        return None
    calls = method == "tools/call"
    if not params.keys() <= (CALL_KEYS if calls else LIST_KEYS) or (calls and not name):
        return None
    modern = protocol == MODERN
    if not (_modern_fits(given) if modern else protocol in LEGACY and PROTOCOL not in given):
        return None
    return Plain(id, method, name, arguments, given, modern)


def _modern_fits(meta: dict[str, Any]) -> bool:
    """Whether a request says of itself and its client what 2026-07-28 requires."""
    return (
        meta.get(PROTOCOL) == MODERN
        and isinstance(meta.get(CAPABILITIES), dict)
        and (CLIENT not in meta or _named(meta[CLIENT]))
    )


def _named(info: Any) -> bool:
    if not isinstance(info, dict):
        return False
    client = cast("dict[str, Any]", info)
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)
