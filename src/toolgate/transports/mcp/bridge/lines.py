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

CHUNK = 65536


class TooLong:
    """Stands for a line that was longer than it may be."""


class Lines:
    """One client's messages, in and out."""

    def __init__(self, longest: int, *, source: int = 0, target: int = 1) -> None:
        self.longest = longest
        self._source = source
        self._target = target
        self._writing = anyio.Lock()

    async def read(self) -> AsyncGenerator[bytes | TooLong]:
        """Each line until the client closes its end; empty ones are left out."""
        loop = asyncio.get_running_loop()
        send, receive = anyio.create_memory_object_stream[bytes | TooLong](1)

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


def _lines(source: int, longest: int) -> Iterator[bytes | TooLong]:
    kept = bytearray()
    skipping = False
    while chunk := _chunk(source):
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            kept += end
            if skipping or len(kept) > longest:
                yield TooLong()
            elif kept.strip():
                yield bytes(kept)
            kept.clear()
            skipping = False
        kept += rest
        if len(kept) > longest:
            kept.clear()
            skipping = True
    if skipping:
        yield TooLong()
    elif kept.strip():
        yield bytes(kept)


def _chunk(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:
        return b""


def _write(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
