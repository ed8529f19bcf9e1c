"""One client on a pair of descriptors, read and written on the event loop, without threads.

Reading: pipes, sockets and terminals are read when the event loop says that there is something.
What cannot be waited for that way (a file, `/dev/null`, anything on Windows) is read by a thread.

Writing: to a pipe or socket whatever it takes at once; the rest waits until it takes more. To a
file or a terminal until all is written.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress

import anyio

from toolgate.transports.mcp.lines import Line, Splitter

CHUNK = 65536
MAX_UNSENT = 8 * 1024 * 1024
"""Bytes that may wait for a client; with more of them nothing new is read from it."""
PATIENCE = 5.0
"""Seconds for a client to take something of what it is owed at the end."""


class Wire:
    """Lines in, and lines out, each of them whole."""

    def __init__(
        self, source: int, target: int, *, longest: int, take: Callable[[Line], None]
    ) -> None:
        self._source = source
        self._target = target
        self._lines = Splitter(longest)
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._polled = False
        self._room = asyncio.Event()
        self._room.set()
        self._end = asyncio.Event()
        self._unsent = bytearray()
        self._moved = asyncio.Event()
        self.lost: OSError | None = None
        """Why the client can be told nothing any more."""
        self._holds = 0
        self._unblocked = _unblock(target)

    async def read(self) -> None:
        """Take each line until the client closes its end, or takes no answers any more."""
        try:
            self._loop.add_reader(self._source, self._readable)
            self._polled = True
        except (OSError, NotImplementedError):
            threading.Thread(target=self._work, daemon=True, name="standard input").start()
        try:
            await self._end.wait()
        finally:
            self._stop_reading()

    def pause_reading(self) -> None:
        """Read nothing more until `resume_reading` was called as often."""
        self._holds += 1
        self._room.clear()
        if self._polled:
            self._loop.remove_reader(self._source)

    def resume_reading(self) -> None:
        """Read on."""
        self._holds -= 1
        if self._holds:
            return
        self._room.set()
        if self._polled:
            self._loop.add_reader(self._source, self._readable)

    def write(self, line: bytes) -> None:
        """Send a line, at the latest when the client takes it."""
        if self.lost:
            return
        data = line + b"\n"
        if self._unsent:
            self._keep(data)
        elif (size := self._push(data)) < len(data):
            self._keep(data[size:])

    async def flush(self) -> None:
        """Wait until everything is sent, or the client takes nothing for a while."""
        while self._unsent and not self.lost:
            self._moved.clear()
            with anyio.move_on_after(PATIENCE) as waiting:
                await self._moved.wait()
            if waiting.cancelled_caught:
                return

    def close(self) -> None:
        """Leave the descriptors as they were."""
        self._stop_reading()
        if self._unsent:
            self._loop.remove_writer(self._target)
        if self._unblocked:
            with suppress(OSError):
                os.set_blocking(self._target, True)

    def _stop_reading(self) -> None:
        if self._polled:
            self._loop.remove_reader(self._source)
            self._polled = False

    def _readable(self) -> None:
        try:
            chunk = os.read(self._source, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the client is gone
            chunk = b""
        self._received(chunk)

    def _received(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk) if chunk else self._lines.finish():
            self._take(line)
        if not chunk:
            self._end.set()

    def _work(self) -> None:
        """Read in a thread, one chunk after the other."""
        chunk = b"\n"
        while chunk:
            try:
                chunk = os.read(self._source, CHUNK)
            except OSError:
                chunk = b""
            handed = self._take_chunk(chunk)
            try:
                asyncio.run_coroutine_threadsafe(handed, self._loop).result()
            except (RuntimeError, CancelledError):  # nobody listens any more
                return handed.close()

    async def _take_chunk(self, chunk: bytes) -> None:
        await self._room.wait()
        self._received(chunk)

    def _push(self, data: bytes | bytearray) -> int:
        """How much of it the client takes at once."""
        size = 0
        try:
            while size < len(data):
                size += os.write(self._target, memoryview(data)[size:] if size else data)
        except BlockingIOError:
            return size
        except OSError as problem:  # the client has closed its end
            self.lost = problem
            self._end.set()
            return len(data)
        return size

    def _keep(self, data: bytes) -> None:
        if not self._unsent:
            self._loop.add_writer(self._target, self._writable)
        before = len(self._unsent)
        self._unsent += data
        if before <= MAX_UNSENT < len(self._unsent):
            self.pause_reading()

    def _writable(self) -> None:
        before = len(self._unsent)
        del self._unsent[: self._push(self._unsent)]
        self._moved.set()
        if not self._unsent:
            self._loop.remove_writer(self._target)
        if len(self._unsent) <= MAX_UNSENT < before:
            self.resume_reading()


def _unblock(target: int) -> bool:
    """Let writes return at once; True where they did not before.

    Not to a terminal, which is not ours alone, nor to a file, which never waits.
    """
    mode = os.fstat(target).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    try:
        blocking = os.get_blocking(target)
        os.set_blocking(target, False)
    except (OSError, AttributeError):  # Windows
        return False
    return blocking
