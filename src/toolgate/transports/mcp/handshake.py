"""What a session keeps of the `initialize` that opened it.

It lives for as long as its client likes, and the SDK keeps with it all that the client declared:
so it is given only what a server can make use of.
"""

from typing import Any, cast

import orjson

FLAGS = {
    "sampling": ("context", "tools"),
    "elicitation": ("form", "url"),
    "roots": ("listChanged",),
}
"""Capabilities of clients that can be asked something, and what each of them says of itself."""
CLIENT = ("name", "title", "version")
LONGEST = 200
"""Characters of a text in which a client says who it is."""
Json = dict[str, Any]


def opening_request(body: bytes, *, any_client: bool) -> bytes | None:
    """The `initialize` in a body, shortened, if its client gets a session.

    That is one that can be asked something, or any. What is not as the protocol wants it stays:
    the SDK refuses it, and there is no session.
    """
    message = request_in(body, "initialize")
    params = None if message is None else message.get("params")
    if message is None or not isinstance(params, dict):
        return None
    given = cast(Json, params)
    declared: Any = given.get("capabilities")
    askable = isinstance(declared, dict) and not FLAGS.keys().isdisjoint(cast(Json, declared))
    if not (any_client or askable):
        return None
    kept: Json = {}
    if "protocolVersion" in given:
        kept["protocolVersion"] = _shortened(given["protocolVersion"])
    if "capabilities" in given:
        kept["capabilities"] = _capabilities(declared)
    if "clientInfo" in given:
        kept["clientInfo"] = _client(given["clientInfo"])
    head = {name: message[name] for name in ("jsonrpc", "id", "method") if name in message}
    return orjson.dumps({**head, "params": kept})


def request_in(body: bytes, method: str) -> Json | None:
    """The request in a body, if it is one of this method."""
    if method.encode() not in body:
        return None
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict):
        return None
    request = cast(Json, message)
    return request if request.get("method") == method else None


def _capabilities(declared: Any) -> Any:
    if not isinstance(declared, dict):
        return declared
    given = cast(Json, declared)
    return {name: _flags(given[name], flags) for name, flags in FLAGS.items() if name in given}


def _flags(declared: Any, known: tuple[str, ...]) -> Any:
    if not isinstance(declared, dict):
        return declared
    given = cast(Json, declared)
    found = {one: given[one] for one in known if one in given}
    return {one: Json() if isinstance(value, dict) else value for one, value in found.items()}


def _client(info: Any) -> Any:
    if not isinstance(info, dict):
        return info
    given = cast(Json, info)
    return {name: _shortened(given[name]) for name in CLIENT if name in given}


def _shortened(text: Any) -> Any:
    return text[:LONGEST] if isinstance(text, str) else text
