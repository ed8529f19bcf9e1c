"""Clients that leave in the middle of something are nobody's defect: no traceback."""

import json
import socket
import struct
from pathlib import Path

from tests.faults.server import KEY, Running, served
from tests.patience import PATIENT

BODY = json.dumps({"collection": "apps", "data": {"a": 1}})
RESET = struct.pack("ii", 1, 0)


def head(path: str, length: int, method: str = "POST", **more: str) -> bytes:
    headers = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "Content-Length": str(length),
        **more,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


def leave(running: Running, sent: bytes, *, answer: bool) -> None:
    """Send something, perhaps wait for the begin of an answer, and reset the connection."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENT) as line:
        line.sendall(sent)
        if answer:
            line.recv(10)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


WRITE = "/v1/tools/create_document"
ACCEPT = {"Accept": "application/json, text/event-stream"}
CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "create_document", "arguments": json.loads(BODY)},
    }
)
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
LEAVING = {
    "in the head": (head(WRITE, 5)[:40], False),
    "in the body": (head(WRITE, 1000) + b"{", False),
    "before the answer": (head(WRITE, len(BODY)) + BODY.encode(), False),
    "in the answer": (head(WRITE, len(BODY)) + BODY.encode(), True),
    "of MCP before the answer": (head("/mcp", len(CALL), **ACCEPT) + CALL.encode(), False),
    "of MCP in the answer": (head("/mcp", len(CALL), **ACCEPT) + CALL.encode(), True),
    "of MCP's SDK, with more requests behind": (
        3 * (head("/mcp", len(LIST), **ACCEPT) + LIST.encode()),
        True,
    ),
    "of many answers at once": (50 * b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", False),
    "of a stream": (head("/mcp", 0, "GET", Accept="text/event-stream"), True),
}


def test_nothing_is_logged_when_clients_leave(tmp_path: Path) -> None:
    with served(tmp_path / "data") as running:
        for sent, answer in LEAVING.values():
            for _ in range(5):
                leave(running, sent, answer=answer)
        assert running.call("list_collections").status == 200
        assert running.stop() == 0
    assert "".join(running.said) == ""
