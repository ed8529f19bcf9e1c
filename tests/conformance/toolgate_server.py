"""toolgate with the suite's fixtures, for a suite that cannot send credentials.

cd tests && python -m conformance.toolgate_server --port 8123 --data DIR
"""

from __future__ import annotations

import argparse
import secrets
import warnings
from pathlib import Path
from typing import Any

import uvicorn
from mcp.shared.exceptions import MCPDeprecationWarning

from toolgate.http_server import Application
from toolgate.settings import read_settings
from toolgate.transports.connection.known_heads import Connection

from .plugin import offer

METHODS = (b"GET ", b"POST ", b"DELETE ", b"OPTIONS ")


class WithKey:
    """Adds the admin key to every request, as a client that can would."""

    def __init__(self, inner: Application, key: str) -> None:
        self._inner = inner
        self._header = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], self._header]
        await self._inner(scope, receive, send)


def keyed(key: str) -> type[Connection]:
    """The same below ASGI: connections then know requests again, as they do in `serve`."""
    line = f"\r\nauthorization: Bearer {key}\r\n".encode()

    class Keyed(Connection):
        def data_received(self, data: bytes) -> None:
            begins = self._task is None and data.startswith(METHODS)
            super().data_received(data.replace(b"\r\n", line, 1) if begins else data)

    return Keyed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--http", default="httptools", choices=["httptools", "h11"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    key = secrets.token_hex(16)
    flags = {"data": given.data, "admin_key": key, "limits.calls_per_minute": 0}
    flags |= {"limits.refusals_per_minute": 1_000_000, "limits.guesses_per_minute": 1_000_000}
    app = Application(read_settings(flags=flags, environment={}), [offer()])
    to = {"host": "127.0.0.1", "port": given.port, "log_level": "warning"}
    if given.http == "httptools":
        uvicorn.run(app, http=keyed(key), **to)
    else:
        uvicorn.run(WithKey(app, key), http=given.http, **to)


if __name__ == "__main__":
    main()
