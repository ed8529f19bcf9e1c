"""An artifact's bytes: from base64, strictly, and back from the store, checked.

Ten MiB are decoded and hashed a piece at a time, so that others have their turn in between and no
further copy is made.
"""

import binascii
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn

import anyio.lowlevel

from toolgate.gate.errors import InvalidArguments, Problem, TooLarge
from toolgate.ports.blobs import Blobs, Data

FIELD = "content_bytes_base64"
MOST_BYTES = 10 * 1024 * 1024
STEP = 1024 * 1024
"""Characters that are decoded at a time; whole groups of four."""
GROUP = 4


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes and their SHA-256."""

    data: bytearray
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
    data, digest, at = bytearray(size), hashlib.sha256(), 0
    for start in range(0, len(text), STEP):
        piece = _piece(text[start : start + STEP])
        data[at : at + len(piece)] = piece
        at += len(piece)
        digest.update(piece)
        await anyio.lowlevel.checkpoint()
    last = text[-GROUP:]
    if at != size or binascii.b2a_base64(_piece(last), newline=False) != last.encode():
        _refuse("padding (=) stands only at the end, after bits that are zero")
    return Content(data, digest.hexdigest())


def _piece(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # also for characters beyond ASCII
        _refuse("use A-Z, a-z, 0-9, + and /, padding at the end, and no spaces or line ends")


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
        await self._check(kept.append)
        return b"".join(kept)

    async def open(self) -> AsyncGenerator[Data]:
        """What the bytes are read from, once they are found to be those that were stored.

        They are read twice, and never in memory together.
        """
        await self._check(len)
        pieces = self.blobs.read(self.name)
        return _goes_on(await anext(pieces, b""), pieces)

    async def _check(self, take: Callable[[Data], object]) -> None:
        digest, size = hashlib.sha256(), 0
        async with aclosing(self.blobs.read(self.name)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self.size:
                    break
                digest.update(piece)
                take(piece)
        if size != self.size or digest.hexdigest() != self.checksum:
            raise Damaged(self.name)


async def _goes_on(first: Data, pieces: AsyncGenerator[Data]) -> AsyncGenerator[Data]:
    """A blob whose reading has begun, so that it can be deleted meanwhile."""
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            yield piece
