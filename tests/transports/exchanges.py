"""One request to the application, piece by piece: what comes and what is taken, as a test likes."""

import asyncio
from typing import Any

import orjson
from tests.patience import PATIENT
from tests.transports.conftest import Web

MCP_HEADERS = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]


class Exchange:
    """A request whose head has come; its body comes when the test says so."""

    def __init__(
        self,
        web: Web,
        path: str,
        length: int | bytes | None,
        *,
        key: str | None = None,
        method: str = "POST",
        reads: bool = True,
    ) -> None:
        size = (b"transfer-encoding", b"chunked")
        if length is not None:
            size = (b"content-length", length if isinstance(length, bytes) else b"%d" % length)
        credential = f"Bearer {key or web.keys['admin']}".encode()
        headers = [(b"host", b"127.0.0.1"), (b"authorization", credential), size, *MCP_HEADERS]
        scope: Any = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "scheme": "http",
        }
        self.sent: list[Any] = []
        self.read = 0
        """How many pieces of the body were taken."""
        self._pieces: asyncio.Queue[Any] = asyncio.Queue()
        self._reads = asyncio.Event()
        if reads:
            self._reads.set()
        self.begun = asyncio.Event()
        """Set when the answer begins."""
        self.asked = asyncio.Event()
        """Set when more is asked for than has come."""
        self.task = asyncio.ensure_future(web.app(scope, self._receive, self._send))  # pyright: ignore[reportArgumentType]

    def give(self, piece: bytes, *, more: bool = False) -> None:
        """Send a piece of the body."""
        self.asked.clear()
        self._pieces.put_nowait({"type": "http.request", "body": piece, "more_body": more})

    def leave(self) -> None:
        """Close the connection."""
        self._pieces.put_nowait({"type": "http.disconnect"})

    async def _receive(self) -> Any:
        if self._pieces.empty():
            self.asked.set()
        message = await self._pieces.get()
        self.read += 1
        return message

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        self.begun.set()
        if message["type"] == "http.response.body":
            await self._reads.wait()

    async def waiting(self) -> None:
        """Until more is asked for than has come."""
        await asyncio.wait_for(self.asked.wait(), PATIENT)

    async def settled(self) -> None:
        """Until more is asked for than has come, or the answer is complete."""
        asks = asyncio.ensure_future(self.asked.wait())
        await asyncio.wait({asks, self.task}, timeout=PATIENT, return_when="FIRST_COMPLETED")
        asks.cancel()

    async def end(self) -> int:
        """Read the answer to its end; its status, 0 where there is none."""
        self._reads.set()
        await asyncio.wait_for(asyncio.shield(self.task), PATIENT)
        return self.status

    @property
    def status(self) -> int:
        """That of the answer."""
        return self.sent[0]["status"] if self.sent else 0

    @property
    def body(self) -> bytes:
        """That of the answer."""
        return b"".join(one.get("body", b"") for one in self.sent)


def called(path: str, tool: str, text: str) -> tuple[str, bytes]:
    """A path and a body that call a tool there."""
    arguments = {"text": text}
    if path == "/rpc":
        body: Any = {"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments}
    elif path == "/mcp":
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    else:
        path, body = f"{path}/{tool}", arguments
    return path, orjson.dumps(body)
