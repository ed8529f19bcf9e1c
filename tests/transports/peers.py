"""A client's end of standard input and output, with the server of the other end in this process."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from tests.patience import PATIENT
from tests.transports.mcp_requests import LEGACY, MODERN, envelope

from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.testing.kit import ADMIN
from toolgate.transports.mcp import stdio
from toolgate.transports.mcp.stdio_credential import Identify


class Peer:
    """Sends lines and reads lines."""

    server: stdio.StdioClient

    def __init__(self, source: int, target: int) -> None:
        self._source: int | None = source
        self._target: int | None = target
        self._came = bytearray()
        self.ended = anyio.Event()
        self.problem: OSError | None = None

    async def write(self, data: bytes) -> None:
        """These bytes, as they are; in a thread, for they may be more than a pipe takes."""
        assert self._target is not None
        with open(os.dup(self._target), "wb") as target:  # noqa: ASYNC230
            await anyio.to_thread.run_sync(target.write, data)
            await anyio.to_thread.run_sync(target.flush)

    async def send(self, *messages: dict[str, Any]) -> None:
        """These messages, all at once."""
        await self.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    async def line(self) -> bytes:
        """The next line; empty when there are no more."""
        assert self._source is not None
        with anyio.fail_after(PATIENT):
            while b"\n" not in self._came:
                chunk = await anyio.to_thread.run_sync(
                    os.read, self._source, 1 << 20, abandon_on_cancel=True
                )
                if not chunk:
                    assert not self._came, "the last line has no end"
                    return b""
                self._came += chunk
        line, _, rest = bytes(self._came).partition(b"\n")
        self._came = bytearray(rest)
        return line

    async def answer(self) -> Any:
        """The next message."""
        line = await self.line()
        assert line, "the server ended"
        return json.loads(line)

    async def ask(self, message: dict[str, Any]) -> Any:
        """The answer to a message that is the only one."""
        await self.send(message)
        return await self.answer()

    async def shake_hands(self, version: str = LEGACY) -> None:
        """What an older client does first; the answer to `ping` shows that it was heard."""
        told = await self.ask(hello(version))
        assert told["result"]["protocolVersion"] == version
        await self.send(INITIALIZED)
        assert (await self.ask(message("ping", era=LEGACY)))["result"] == {}

    async def open(self, era: str) -> None:
        """Whatever a client of this era has to do before it may call."""
        if era != MODERN:
            await self.shake_hands(era)

    async def finish_and_be_heard(self) -> None:
        """Send no more, and wait until the server knows it."""
        self.finish()
        with anyio.fail_after(PATIENT):
            await self.server._wire._end.wait()  # pyright: ignore[reportPrivateUsage]
        await quiet()

    def finish(self) -> None:
        """Send no more."""
        if self._target is not None:
            os.close(self._target)
            self._target = None

    def leave(self) -> None:
        """Read no more."""
        if self._source is not None:
            os.close(self._source)
            self._source = None


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def hello(version: str = LEGACY, id: Any = "hello") -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def message(
    method: str, *, era: str = MODERN, id: Any = 1, meta: Any = None, **params: Any
) -> dict[str, Any]:
    """A request as the era wants it."""
    carried = (envelope() if era == MODERN else {}) | (meta or {})
    if carried:
        params["_meta"] = carried
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(name: str, arguments: Any = ..., **more: Any) -> dict[str, Any]:
    given = {} if arguments is ... else {"arguments": arguments}
    return message("tools/call", name=name, **given, **more)


def cancel(id: Any) -> dict[str, Any]:
    params = {"requestId": id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


@asynccontextmanager
async def piped(
    gate: Gate,
    principal: Principal = ADMIN,
    *,
    source: int | None = None,
    identify: Identify | None = None,
) -> AsyncGenerator[Peer, None]:
    """A client of this gate; it closes its end when done, and the server ends by itself.

    With `source` the server reads from there instead of from the peer.
    """
    inside, target = os.pipe()
    mine, outside = os.pipe()
    peer = Peer(mine, target)

    async def serve() -> None:
        try:
            given = inside if source is None else source
            peer.server = stdio.StdioClient(
                gate, principal, given, outside, underscore_names=True, identify=identify
            )
            await peer.server.serve()
        except OSError as problem:
            peer.problem = problem
        finally:
            os.close(inside)
            os.close(outside)
            peer.ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield peer
            peer.finish()
            with anyio.fail_after(PATIENT):
                await peer.ended.wait()
    finally:
        peer.finish()
        peer.leave()


async def quiet() -> None:
    """Let everything run that can."""
    for _ in range(100):
        await anyio.lowlevel.checkpoint()
