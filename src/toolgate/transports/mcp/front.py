"""The short way for `tools/call` and `tools/list` over HTTP.

Takes a request only when every header and field is exactly as the protocol wants it and the
tool needs no live exchange; everything else goes to the SDK unchanged. Both ways make the same
`Call`, so checks, limits and audit are the same (docs/decisions/0005).
"""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast

import orjson

from toolgate.gate.answers import Outcome
from toolgate.gate.errors import GateError, InvalidArguments, TooLarge, UnknownTool
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.principal import Principal
from toolgate.transports.asgi import (
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
    dry_run_of,
    parse_json,
    principal_of,
    read_body,
    request_id_of,
    send,
    send_json,
)
from toolgate.transports.mcp.listing import NAME, TRANSPORT, listed_tool, mirrors_headers

MODERN = "2026-07-28"
LEGACY = {"2025-06-18", "2025-11-25"}
META = "io.modelcontextprotocol/"
CALL_KEYS = {"name", "arguments", "_meta"}
ROUTING = {b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}


@dataclass(frozen=True, slots=True)
class Plain:
    """A request that needs nothing of the SDK."""

    id: str | int
    method: str
    name: str
    arguments: Any
    modern: bool


class Front:
    """Answers plain requests itself, hands all others to the SDK."""

    def __init__(self, gate: Gate, sdk: ASGIApp, *, underscore_names: bool) -> None:
        self._gate = gate
        self._sdk = sdk
        self._underscores = underscore_names
        self._refresh()
        self._meta = {f"{META}serverInfo": {"name": NAME, "version": version("toolgate")}}

    def _refresh(self) -> None:
        """Forget what was made from tools that are no more."""
        self._epoch = self._gate.catalogue.epoch
        self._lists: dict[tuple[Any, ...], bytes] = {}
        self._live = {
            tool.name
            for tool in self._gate.catalogue
            if tool.interactive or tool.open_world or mirrors_headers(tool)
        }

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one HTTP request to the MCP endpoint."""
        if scope["method"] != "POST":
            return await self._sdk(scope, receive, to)
        try:
            body = await read_body(receive, self._gate.limits.bounds.body_bytes)
        except TooLarge as problem:
            return await send_json(to, 413, self._refuse(scope, problem).body)
        if self._epoch != self._gate.catalogue.epoch:
            self._refresh()
        plain = None
        try:
            plain = _plain(scope["headers"], parse_json(body))
        except InvalidArguments as problem:
            self._refuse(scope, problem)  # for the audit; the SDK words the answer
        if plain is not None and plain.method == "tools/list":
            return await send(to, 200, self._listed(scope, plain))
        if plain is not None and self._is_simple(principal_of(scope), plain.name):
            return await self._call(scope, to, plain)
        await self._sdk(scope, _replayed(body, receive), to)

    def _is_simple(self, principal: Principal, name: str) -> bool:
        """Whether no SDK is needed; a tool that is hidden goes the same way as one unknown."""
        tool = self._gate.catalogue.find(name)
        return (
            tool is None
            or tool.name not in self._live
            or not self._gate.policy.decide(principal, tool).visible
        )

    async def _call(self, scope: Scope, to: Send, plain: Plain) -> None:
        outcome = await self._gate.execute(
            Call(
                tool=plain.name,
                arguments=plain.arguments,
                principal=principal_of(scope),
                request_id=request_id_of(scope),
                transport=TRANSPORT,
                dry_run=dry_run_of(scope),
            )
        )
        if isinstance(outcome.error, UnknownTool):
            told = {"code": -32602, "message": outcome.error.message}
            status = 400 if plain.modern else 200
            return await send_json(to, status, {"jsonrpc": "2.0", "id": plain.id, "error": told})
        await send(to, 200, self._answer(plain, outcome))

    def _answer(self, plain: Plain, outcome: Outcome) -> bytes:
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": outcome.text}],
            "isError": outcome.error is not None,
        }
        if isinstance(outcome.body, dict):  # older clients take nothing else
            result["structuredContent"] = orjson.Fragment(outcome.raw)
        if plain.modern:
            result |= {"resultType": "complete", "_meta": self._meta}
        return orjson.dumps({"jsonrpc": "2.0", "id": plain.id, "result": result})

    def _listed(self, scope: Scope, plain: Plain) -> bytes:
        """The list for this shape of caller, serialised once."""
        principal = principal_of(scope)
        key = (principal.shape, plain.modern)
        if key not in self._lists:
            visible = self._gate.policy.visible(principal, self._gate.catalogue)
            result: dict[str, Any] = {
                "tools": [listed_tool(tool, self._underscores) for tool in visible]
            }
            if plain.modern:
                result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                result["_meta"] = self._meta
            self._lists[key] = orjson.dumps(result)
        listed = orjson.Fragment(self._lists[key])
        return orjson.dumps({"jsonrpc": "2.0", "id": plain.id, "result": listed})

    def _refuse(self, scope: Scope, problem: GateError) -> Outcome:
        call = Call(
            tool="(unreadable)",
            arguments=None,
            principal=principal_of(scope),
            request_id=request_id_of(scope),
            transport=TRANSPORT,
        )
        return self._gate.refuse(call, problem, "unreadable")


def _plain(headers: list[tuple[bytes, bytes]], message: Any) -> Plain | None:
    """The request, if it is exactly what the short way can answer."""
    routing = _routing(headers)
    if routing is None or b"mcp-session-id" in routing:
        return None
    if not isinstance(message, dict):
        return None
    request = cast("dict[str, Any]", message)
    id, method = request.get("id"), request.get("method")
    params = request.get("params", {})
    if request.get("jsonrpc") != "2.0" or not isinstance(id, str | int) or isinstance(id, bool):
        return None
    if not isinstance(params, dict) or method not in ("tools/call", "tools/list"):
        return None
    return _routed(routing, id, method, cast("dict[str, Any]", params))


def _routed(
    routing: dict[bytes, str], id: str | int, method: str, params: dict[str, Any]
) -> Plain | None:
    name = params.get("name", "")
    meta = params.get("_meta", {})
    arguments = params.get("arguments")
    protocol = routing.get(b"mcp-protocol-version")
    modern = protocol == MODERN
    if not isinstance(name, str) or not isinstance(meta, dict):
        return None
    if not isinstance(arguments, dict | None):
        return None
    if modern:
        wanted = {b"mcp-method": method} | ({b"mcp-name": name} if name else {})
        if any(routing.get(key) != value for key, value in wanted.items()):
            return None
    if not _era_fits(protocol, cast("dict[str, Any]", meta)):
        return None
    allowed = CALL_KEYS if method == "tools/call" else {"_meta"}
    if not params.keys() <= allowed or (method == "tools/call" and not name):
        return None
    return Plain(id, method, name, arguments, modern)


def _era_fits(protocol: str | None, meta: dict[str, Any]) -> bool:
    if protocol != MODERN:
        return protocol in LEGACY and f"{META}protocolVersion" not in meta
    info = meta.get(f"{META}clientInfo", {"name": "", "version": ""})
    return (
        meta.get(f"{META}protocolVersion") == protocol
        and isinstance(meta.get(f"{META}clientCapabilities"), dict)
        and _named(info)
    )


def _named(info: Any) -> bool:
    if not isinstance(info, dict):
        return False
    client = cast("dict[str, Any]", info)
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)


def _routing(headers: list[tuple[bytes, bytes]]) -> dict[bytes, str] | None:
    """MCP's routing headers; None when one stands twice or the media types do not fit."""
    found: dict[bytes, str] = {}
    accept = content = b""
    for key, value in headers:
        if key in ROUTING:
            if key in found:
                return None
            found[key] = value.decode("latin-1").strip()
        elif key == b"accept":
            accept += value
        elif key == b"content-type":
            content = value
    both = b"application/json" in accept and b"text/event-stream" in accept
    fits = both and content.partition(b";")[0].strip() == b"application/json"
    return found if fits else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body once more, then what follows it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
