"""MCP requests over HTTP in both eras, spelled out, and their answers."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = [MODERN, LEGACY]
META = "io.modelcontextprotocol/"


def envelope(version: str = MODERN, **more: Any) -> dict[str, Any]:
    """The `_meta` that every modern request carries."""
    return {
        f"{META}protocolVersion": version,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": {"name": "test", "version": "1"},
        **more,
    }


@dataclass(frozen=True, slots=True)
class Request:
    """One POST to the MCP endpoint."""

    body: Any
    headers: dict[str, str] = field(default_factory=dict[str, str])
    twice: tuple[str, ...] = ()
    """Headers to send twice."""

    def having(self, **headers: str | None) -> "Request":
        """With other headers, `mcp_name` for `Mcp-Name`; None leaves one out."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        merged = {**self.headers, **changed}
        return replace(self, headers={k: v for k, v in merged.items() if v is not None})

    def saying(self, **members: Any) -> "Request":
        """With other members of the JSON-RPC message."""
        return replace(self, body={**self.body, **members})

    def with_params(self, **params: Any) -> "Request":
        """With other params."""
        return self.saying(params={**self.body.get("params", {}), **params})

    async def send(self, client: httpx2.AsyncClient, path: str = "/mcp") -> httpx2.Response:
        """Post it."""
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = [*self.headers.items(), *((name, self.headers[name]) for name in self.twice)]
        return await client.post(path, content=content, headers=headers)


def request(era: str, method: str, params: dict[str, Any] | None = None) -> Request:
    """A request as the era wants it."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": era,
    }
    params = dict(params or {})
    if era == MODERN:
        params["_meta"] = envelope()
        headers["mcp-method"] = method
        if named := params.get("name", params.get("uri")):
            headers["mcp-name"] = named
    return Request({**body, "params": params}, headers)


def tool_call(era: str, name: str, arguments: Any = ...) -> Request:
    """A `tools/call`."""
    given = {} if arguments is ... else {"arguments": arguments}
    return request(era, "tools/call", {"name": name, **given})


def initialize(*capabilities: str) -> Request:
    """The first message of the older era."""
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {name: {} for name in capabilities},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return request(LEGACY, "initialize", params).having(mcp_protocol_version=None)


def message_of(answer: httpx2.Response) -> Any:
    """The JSON-RPC message of an answer, whether plain or as a stream of one event."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return answer.json()
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    assert len(lines) == 1, answer.text
    return json.loads(lines[0].removeprefix("data: "))
