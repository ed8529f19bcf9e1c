"""Writes that come at a given rate, whatever the server does: nobody waits for an answer before.

They share the machine with the server, so they take little of it: plain sockets on one event loop.
"""

import asyncio
import itertools
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson
from tests.faults.server import KEY

CLIENTS = 24
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
END = b"\r\n\r\n"
REQUEST = (
    b"POST /v1/tools/firestore_write HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
    + KEY.encode()
    + b"\r\nContent-Length: "
)


class OfferedWrites:
    """Clients that write documents, each at its time."""

    def __init__(self, port: int, rate: int) -> None:
        self._port = port
        self._rate = rate
        self._numbers = itertools.count()
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._offer()))
        self._began = 0.0
        self.acknowledged: list[tuple[float, float]] = []
        """When each was acknowledged, and how long that was after its time."""
        self.refused: list[bytes] = []

    @property
    def count(self) -> int:
        return len(self.acknowledged)

    def during(self, what: str, work: Callable[[], Any]) -> float:
        """The writes a second that were acknowledged while something was done, which is told."""
        began = time.monotonic()
        work()
        ended = time.monotonic()
        some = [late for at, late in self.acknowledged[:] if began <= at <= ended]
        rate = len(some) / (ended - began)
        print(
            f"\n{what}: {ended - began:.1f} s, {rate:.0f} writes a second acknowledged, "
            f"the longest {max(some, default=0) * 1000:.0f} ms after its time"
        )
        return rate

    def stop(self) -> None:
        """No more are begun; those under way are answered."""
        self._over.set()
        self._thread.join()

    async def _offer(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._write())

    async def _write(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            number = next(self._numbers)
            due = self._began + number / self._rate
            await asyncio.sleep(due - time.monotonic())
            if self._over.is_set():
                return writer.close()
            # Some are new, and some change what others change too.
            name = f"shared-{number % 7}" if number % 2 else f"w{number}"
            body = orjson.dumps({"path": f"written/{name}", "document": {"number": number}})
            writer.write(REQUEST + str(len(body)).encode() + END + body)
            head = await reader.readuntil(END)
            length = LENGTH.search(head)
            assert length is not None, head
            said = await reader.readexactly(int(length[1]))
            now = time.monotonic()
            if head.startswith(b"HTTP/1.1 200 "):
                self.acknowledged.append((now, now - due))
            else:
                self.refused.append(said)

    def __enter__(self) -> "OfferedWrites":
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
