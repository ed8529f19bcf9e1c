"""Requests as bytes, and one plain exchange to learn what the answer to them is."""

import json
import re
import socket
from dataclasses import dataclass
from typing import Any

NEW, OLD = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
TEXT = "The quick brown fox jumps over the lazy dog."
ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": TEXT}}
DOCUMENT: dict[str, Any] = {
    "name": "get_document",
    "arguments": {"collection": "users", "document_id": "abc123"},
}
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


def message(method: str, params: dict[str, Any], era: str) -> bytes:
    """A JSON-RPC message; the new era says in each one who asks."""
    if era == NEW:
        meta = {
            f"{META}protocolVersion": era,
            f"{META}clientCapabilities": {},
            f"{META}clientInfo": {"name": "bench", "version": "1"},
        }
        params = params | {"_meta": meta}
    told = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(told, separators=(",", ":")).encode()


def request(
    method: str, params: dict[str, Any], era: str, *, key: str | None = None, path: str = "/mcp"
) -> bytes:
    """The whole HTTP request, as clients of this era send it."""
    body = message(method, params, era)
    headers = {
        "Host": "127.0.0.1",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "MCP-Protocol-Version": era,
    }
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    if era == NEW:
        headers["Mcp-Method"] = method
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the body as it was sent, with chunk marks if there were any."""

    head: bytes
    body: bytes

    @property
    def good(self) -> bool:
        return self.head.startswith(b"HTTP/1.1 200 ")

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        named = (line.partition(": ") for line in lines)
        return [(name.lower(), value) for name, _, value in named]


def ask(port: int, request: bytes) -> Answer:
    """Send one request and read the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        data = b""
        while not _whole(data):
            part = connection.recv(1 << 16)
            if not part:
                raise ConnectionError(f"The server closed the connection after {data[:300]!r}")
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return Answer(head, body)


def _whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    if length := LENGTH.search(head):
        return len(body) >= int(length[1])
    if CHUNKED.search(head):
        return body.endswith(b"0\r\n\r\n")
    raise ConnectionError(f"The answer has no length: {head[:300]!r}")
