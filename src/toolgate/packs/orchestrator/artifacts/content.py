"""An artifact's bytes: from base64, strictly, and back from the store, checked.

Ten MiB are hashed a piece at a time, so that others have their turn in between.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn

import anyio.lowlevel
import pybase64

from toolgate.gate.errors import InvalidArguments, Problem, TooLarge
from toolgate.ports.blobs import BlobDigest, Blobs, Data

FIELD = "content_bytes_base64"
MOST_BYTES = 10 * 1024 * 1024
STEP = 1024 * 1024
"""Bytes that are hashed at a time."""
GROUP = 4


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes and their SHA-256."""

    data: bytes
    checksum: str


class Damaged(Exception):
    """What is stored is not what was stored."""


async def decoded(text: str, most: int = MOST_BYTES) -> Content:
    """The bytes of a text in base64: the standard alphabet, padding, and nothing else."""
    if len(text) % GROUP:
        _refuse("its length must be a multiple of four: add the padding (=)")
    size = len(text) // GROUP * 3 - text[-2:].count("=")
    if size > most:
        raise TooLarge(f"{FIELD} holds {size} bytes; an artifact has at most {most}. Store less.")
    try:
        data = pybase64.b64decode(text, validate=True)
    except ValueError:  # also for characters beyond ASCII
        _refuse("use A-Z, a-z, 0-9, + and /, padding at the end, and no spaces or line ends")
    last = text[-GROUP:]
    if pybase64.b64encode(pybase64.b64decode(last)).decode() != last:
        _refuse("bits that the padding (=) leaves over must be zero")
    digest, whole = hashlib.sha256(), memoryview(data)
    for at in range(0, size, STEP):
        digest.update(whole[at : at + STEP])
        await anyio.lowlevel.checkpoint()
    return Content(data, digest.hexdigest())


def _refuse(rule: str) -> NoReturn:
    raise InvalidArguments([Problem(FIELD, "format", f"{FIELD} is not base64: {rule}")])


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Bytes in a blob, as they must be."""

    blobs: Blobs
    name: str
    size: int
    checksum: str

    async def read(self) -> bytes:
        """The bytes; raises `Damaged` unless they are those that were stored."""
        kept: list[Data] = []
        digest, size = hashlib.sha256(), 0
        async with aclosing(self.blobs.read(self.name)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self.size:
                    break
                digest.update(piece)
                kept.append(piece)
        self._check(BlobDigest(size, digest.hexdigest()))
        return b"".join(kept)

    async def open(self) -> AsyncGenerator[Data]:
        """What the bytes are read from, once they are found to be those that were stored.

        They are read twice, and never in memory together.
        """
        self._check(await self.blobs.digest(self.name))
        pieces = self.blobs.read(self.name)
        return _goes_on(await anext(pieces, b""), pieces)

    def _check(self, found: BlobDigest) -> None:
        if found != BlobDigest(self.size, self.checksum):
            raise Damaged(self.name)


async def _goes_on(first: Data, pieces: AsyncGenerator[Data]) -> AsyncGenerator[Data]:
    """A blob whose reading has begun, so that it can be deleted meanwhile."""
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            yield piece
