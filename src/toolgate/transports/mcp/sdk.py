"""The MCP SDK behind HTTP, loaded beside the running server.

Importing it takes longer than everything else together, so the server is ready without it; a
request that needs it waits for the import to end.
"""

import importlib
import logging
from typing import Any

import anyio
import anyio.to_thread

from toolgate.gate.pipeline import Gate
from toolgate.identity.credentials import Credentials
from toolgate.sections import Settings
from toolgate.transports.asgi import ASGIApp, Receive, Scope, Send, send_json

logger = logging.getLogger(__name__)


class Sdk:
    """Stands for the SDK's ASGI app until, and after, it is there."""

    def __init__(self, gate: Gate, credentials: Credentials, settings: Settings) -> None:
        self._gate = gate
        self._credentials = credentials
        self._settings = settings
        self._loaded = anyio.Event()
        self._app: ASGIApp | None = None

    async def run(self) -> None:
        """Load the SDK and keep its background work alive until cancelled."""
        try:
            await self._run()
        except Exception:
            logger.exception("the MCP SDK could not be started")
            self._loaded.set()

    async def _run(self) -> None:
        module: Any = await anyio.to_thread.run_sync(
            importlib.import_module, "toolgate.transports.mcp.sessions"
        )
        sessions = module.sessions(self._gate, self._credentials, self._settings)
        async with sessions.run():
            self._app = sessions
            self._loaded.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request to the SDK."""
        await self._loaded.wait()
        if self._app is None:
            return await send_json(send, 503, {"error": "MCP is not available; see the log."})
        await self._app(scope, receive, send)
