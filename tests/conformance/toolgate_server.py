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

from toolgate.serving import Application
from toolgate.settings import load
from toolgate.transports.connections import Connection

from .plugin import offer


class WithKey:
    """Adds the admin key to every request, as a client that can would."""

    def __init__(self, inner: Application, key: str) -> None:
        self._inner = inner
        self._header = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], self._header]
        await self._inner(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--http", default="httptools", choices=["httptools", "h11"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    key = secrets.token_hex(16)
    flags = {"data": given.data, "admin_key": key, "limits.calls_per_minute": 0}
    app = WithKey(Application(load(flags=flags, environment={}), [offer()]), key)
    http = Connection if given.http == "httptools" else given.http
    uvicorn.run(app, host="127.0.0.1", port=given.port, http=http, log_level="warning")


if __name__ == "__main__":
    main()
