"""Requests with a file in them, which are larger than others may be.

Such a body goes to a temporary file as it comes, however slowly, and is read when it is its turn:
one at a time, so that many of them do not fill the memory. Only who may call a tool that takes
files may send one, with a `Content-Length` that says so.
"""

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, BinaryIO

from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import (
    BODY_LIMIT,
    PRINCIPAL,
    ASGIApp,
    ClientGone,
    Receive,
    Scope,
    Send,
    headers_of,
    replay,
)

MOST_DIGITS = 12


class LargeBodies:
    """Stands before the transports where there are tools that take files."""

    def __init__(self, inner: ASGIApp, gate: Gate, folder: Path) -> None:
        self._inner = inner
        self._folder = folder
        """For the temporary files, which have no name there."""
        self._gate = gate
        self._usual = gate.limits.settings.body_bytes
        self._turn = asyncio.Lock()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand a request on; one that is large, when its turn has come."""
        length = headers_of(scope).get(b"content-length", b"")
        if not length.isdigit() or len(length) > MOST_DIGITS or int(length) <= self._usual:
            return self._inner(scope, receive, send)
        return self._large(scope, receive, send, int(length))

    async def _large(self, scope: Scope, receive: Receive, send: Send, length: int) -> None:
        most = self._most(scope)
        if length > most:  # refused in the words of its transport, once too much has come
            return await self._inner(scope, receive, send)
        scope[BODY_LIMIT] = most
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            await _keep(file, receive)
            async with self._turn:
                file.seek(0)
                whole = {"type": "http.request", "body": file.read(length), "more_body": False}
                again = replay(whole, receive)
                del whole  # whoever reads it holds it, and nobody else
                await self._inner(scope, again, send)

    def _most(self, scope: Scope) -> int:
        principal = scope.get(PRINCIPAL)
        if principal is None:
            return 0
        return self._gate.limits.largest_body(self._gate.visible(principal))


async def _keep(file: BinaryIO, receive: Receive) -> None:
    """Write a body to a file; the server sees to it that it is as long as it is said to be."""
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        file.write(message.get("body", b""))
        more = message.get("more_body", False)


def takes(gate: Gate, tool: str, size: int) -> bool:
    """Whether a request of this size may be a call of this tool; one that is unknown may not."""
    found = gate.catalogue.find(tool)
    return found is not None and size <= gate.limits.body_bytes(found)


def tool_called(message: Any) -> str:
    """The tool that a message of MCP calls; nothing where it calls none."""
    match message:
        case {"method": "tools/call", "params": {"name": str() as name}}:
            return name
        case _:
            return ""
