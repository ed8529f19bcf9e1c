"""Which requests need nothing of the SDK.

A `tools/call` or `tools/list` with every field exactly as the protocol wants it. What is odd in
any way is not plain: what is wrong with it is the SDK's to say (docs/decisions/0005).
"""

from types import NoneType
from typing import Any, NamedTuple

from toolgate.transports.jsonrpc import LARGEST_ID, SMALLEST_ID

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""What `initialize` can agree on."""
LEGACY = frozenset({"2025-06-18", "2025-11-25"})
"""The ones of them whose requests can be plain."""
META = "io.modelcontextprotocol/"
PROTOCOL = f"{META}protocolVersion"
CAPABILITIES = f"{META}clientCapabilities"
CLIENT = f"{META}clientInfo"
DRY_RUN = "toolgate/dryRun"
"""Asks for a dry run, unless it is false; in a result, what it would change."""
METHODS = ("tools/call", "tools/list")  # not a set: anything may stand there, also a list
CALL_KEYS = frozenset({"name", "arguments", "_meta"})
LIST_KEYS = frozenset({"_meta"})
OBJECT: Any = dict
"""JSON's name for it; a type checker would ask what is in it."""
TEXT: Any = str
GIVEN = (dict, NoneType)
NAMED = {"name": "", "version": ""}
"""In the place of a client that says nothing of itself."""


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
    """The request of a parsed message, if it is plain in this protocol.

    Types are compared and not asked for: JSON knows no others, and true is no number.
    """
    if type(message) is not OBJECT or message.get("jsonrpc") != "2.0":
        return None
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    wordable = type(id) is str or (type(id) is int and SMALLEST_ID <= id <= LARGEST_ID)
    if not wordable or method not in METHODS or type(params) is not OBJECT:
        return None
    name, arguments, meta = params.get("name", ""), params.get("arguments"), params.get("_meta", {})
    if type(name) is not TEXT or type(arguments) not in GIVEN or type(meta) is not OBJECT:
        return None
    calls = method == "tools/call"
    if not params.keys() <= (CALL_KEYS if calls else LIST_KEYS) or (calls and not name):
        return None
    modern = protocol == MODERN
    if not (_modern_fits(meta) if modern else protocol in LEGACY and PROTOCOL not in meta):
        return None
    return Plain(id, method, name, arguments, meta, modern)


def _modern_fits(meta: Any) -> bool:
    """Whether a request says of itself and its client what 2026-07-28 requires."""
    client = meta.get(CLIENT, NAMED)
    return (
        meta.get(PROTOCOL) == MODERN
        and type(meta.get(CAPABILITIES)) is OBJECT
        and type(client) is OBJECT
        and type(client.get("name")) is TEXT
        and type(client.get("version")) is TEXT
    )
