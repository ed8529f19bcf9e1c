"""Backups as blobs: parts of a few MiB, and a last blob without which they are no backup.

A store takes a blob whole, so a backup of any size is put in parts; together, in the order of
their names, they are its file. Whatever has no last blob was never finished, and is removed.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from toolgate.backups.apart import Tell, read_apart
from toolgate.backups.reading_process import Order
from toolgate.ports.blobs import Blobs, Data

FOLDER = "backups"
COMPLETE = "complete-"
"""How the last blob begins; how many parts there are follows."""
PART_BYTES = 8 * 1024**2
NAME = re.compile(r"[0-9]{8}t[0-9]{9}z-[0-9a-f]{8}")


class StoredBackup(NamedTuple):
    """A whole backup."""

    name: str
    size: int
    parts: int


def new_name(now: datetime | None = None) -> str:
    """A name that sorts by time."""
    now = now or datetime.now(UTC)
    return f"{_time_part(now)}-{secrets.token_hex(4)}"


def _time_part(moment: datetime) -> str:
    return f"{moment:%Y%m%dt%H%M%S}{moment.microsecond // 1000:03}z"


class StoredBackups:
    """The backups among the blobs of a pack."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def make(
        self,
        name: str,
        order: Order,
        *,
        tell: Tell,
        before_end: Callable[[], Awaitable[None]],
    ) -> dict[str, Any]:
        """Make one; what its first and its last line say. Where `before_end` raises, none."""
        sink = PartSink(self._blobs, f"{FOLDER}/{name}")
        told = await read_apart(order, sink.write, tell)
        await sink.finish()
        await before_end()
        last = f"{FOLDER}/{name}/{COMPLETE}{sink.parts:06}"
        await self._blobs.put(last, orjson.dumps(told | {"bytes": sink.bytes}))
        return told

    async def whole(self) -> list[StoredBackup]:
        """The whole ones, oldest first."""
        found = await self._found()
        return [
            StoredBackup(name, sum(blobs[part] for part in parts), len(parts))
            for name, blobs in sorted(found.items())
            if (parts := parts_of(blobs))
        ]

    async def remove_unfinished(self) -> list[str]:
        """Remove what never became a backup; call it only while none is being made."""
        found = await self._found()
        names = [name for name, blobs in found.items() if not parts_of(blobs)]
        for name in names:
            await self._remove(name, found[name])
        return names

    async def keep(self, many: int, oldest: datetime | None = None) -> list[str]:
        """Remove all whole ones but the newest so many, and those before a moment; which they were.

        The newest one stays, however old it is.
        """
        found = await self._found()
        whole = sorted(name for name, blobs in found.items() if parts_of(blobs))
        first = _time_part(oldest) if oldest else ""
        old = [name for name in whole[:-1] if name not in whole[-many:] or name < first]
        for name in old:
            await self._remove(name, found[name])
        return old

    async def damage(self, one: StoredBackup) -> str | None:
        """What is wrong with a whole one at first sight; None where nothing is."""
        last = f"{FOLDER}/{one.name}/{COMPLETE}{one.parts:06}"
        told = b"".join([bytes(piece) async for piece in self._blobs.read(last)])
        try:
            size = orjson.loads(told)["bytes"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return "its last blob cannot be read"
        return None if size == one.size else f"{one.size:,} of {size:,} bytes are there"

    async def unfinished(self) -> list[str]:
        """What never became a backup, or is being made."""
        return sorted(name for name, blobs in (await self._found()).items() if not parts_of(blobs))

    async def read(self, name: str) -> AsyncGenerator[Data]:
        """The bytes of one, piece by piece; nothing where there is none."""
        blobs = (await self._found()).get(name, {})
        for part in parts_of(blobs):
            async for piece in self._blobs.read(f"{FOLDER}/{name}/{part}"):
                yield piece

    async def _remove(self, name: str, blobs: dict[str, int]) -> None:
        # Its last blob first: what is left of it, should this be stopped, counts as unfinished.
        for one in sorted(blobs, key=lambda one: not one.startswith(COMPLETE)):
            await self._blobs.delete(f"{FOLDER}/{name}/{one}")

    async def _found(self) -> dict[str, dict[str, int]]:
        """The sizes of blobs, by backup and name."""
        found: dict[str, dict[str, int]] = {}
        async for page in self._blobs.pages():
            for blob in page:
                folder, _, rest = blob.name.partition("/")
                name, _, part = rest.partition("/")
                if folder == FOLDER and part and NAME.fullmatch(name):
                    found.setdefault(name, {})[part] = blob.size
        return found


def parts_of(blobs: Collection[str]) -> list[str]:
    """The parts of a backup, in order; none of one that is not whole."""
    parts = sorted(one for one in blobs if not one.startswith(COMPLETE))
    return parts if f"{COMPLETE}{len(parts):06}" in blobs else []


class PartSink:
    """Puts a file into blobs, a part at a time."""

    def __init__(self, blobs: Blobs, folder: str) -> None:
        self._blobs = blobs
        self._folder = folder
        self._waiting = bytearray()
        self.parts = 0
        self.bytes = 0

    async def write(self, data: bytes) -> None:
        """Take the next bytes."""
        self._waiting += data
        while len(self._waiting) >= PART_BYTES:
            part = bytes(self._waiting[:PART_BYTES])
            del self._waiting[:PART_BYTES]
            await self._put(part)

    async def finish(self) -> None:
        """Put the rest."""
        await self._put(bytes(self._waiting))

    async def _put(self, part: bytes) -> None:
        self.parts += 1
        self.bytes += len(part)
        await self._blobs.put(f"{self._folder}/part-{self.parts:06}", part)


class PieceReader:
    """A file for a thread whose bytes come from the event loop."""

    def __init__(self, pieces: AsyncGenerator[Data], fetched: Callable[[int], None]) -> None:
        self._pieces = pieces
        self._fetched = fetched
        self._loop = asyncio.get_running_loop()
        self._waiting = b""

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes; none at the end."""
        if not self._waiting:
            coming = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            self._waiting = coming.result()
            self._fetched(len(self._waiting))
        if size < 0:
            size = len(self._waiting)
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        return data

    async def _next(self) -> bytes:
        return bytes(await anext(self._pieces, b""))
