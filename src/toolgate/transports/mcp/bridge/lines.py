"""Standard input and output as lines, each of bounded length.

The descriptors are read and written directly, in threads: a buffered reader that waits for input
cannot be ended, and takes the interpreter down with it.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Iterator

import anyio
import anyio.to_thread

from toolgate.transports.mcp.lines import Line, Splitter

CHUNK = 65536


class Lines:
    """One client's messages, in and out."""

    def __init__(self, longest: int, *, source: int = 0, target: int = 1) -> None:
        self.longest = longest
        self._source = source
        self._target = target
        self._writing = anyio.Lock()

    async def read(self) -> AsyncGenerator[Line]:
        """Each line until the client closes its end; empty ones are left out."""
        loop = asyncio.get_running_loop()
        send, receive = anyio.create_memory_object_stream[Line](1)

        def work() -> None:
            try:
                for line in _lines(self._source, self.longest):
                    asyncio.run_coroutine_threadsafe(send.send(line), loop).result()
                loop.call_soon_threadsafe(send.close)
            except (RuntimeError, anyio.BrokenResourceError):
                pass  # nobody listens any more

        threading.Thread(target=work, daemon=True, name="standard input").start()
        with receive:
            async for line in receive:
                yield line

    async def write(self, line: bytes) -> None:
        """One line, whole, however many write at once."""
        async with self._writing:
            await anyio.to_thread.run_sync(_write, self._target, line + b"\n")


def _lines(source: int, longest: int) -> Iterator[Line]:
    splitter = Splitter(longest)
    while chunk := _chunk(source):
        yield from splitter.feed(chunk)
    yield from splitter.finish()


def _chunk(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:
        return b""


def _write(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
