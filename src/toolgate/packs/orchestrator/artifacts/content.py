"""An artifact's bytes: from base64, strictly, and back from the store, checked.

Large ones are decoded and hashed in a thread: others are answered meanwhile.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn

import anyio.to_thread
import pybase64

from toolgate.gate.errors import InvalidArguments, Problem, TooLarge
from toolgate.ports.blobs import BlobDigest, Blobs, Data

FIELD = "content_bytes_base64"
MAX_BYTES = 10 * 1024 * 1024
LONG_TEXT = 256 * 1024
"""Characters from which on a text is decoded in a thread; with fewer, that would take longer."""
PIECE = 1024 * 1024
"""Characters that are decoded at a time."""
GROUP = 4
WHITE_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes and their SHA-256."""

    data: Data
    checksum: str


class Damaged(Exception):
    """What is stored is not what was stored."""


async def decoded(text: str, most: int = MAX_BYTES) -> Content:
    """The bytes of a text in base64: the standard alphabet, padding, and nothing else."""
    if len(text) % GROUP:
        _refuse(text, "its length must be a multiple of four: add the padding (=)")
    size = len(text) // GROUP * 3 - text[-2:].count("=")
    if size > most:
        raise TooLarge(f"{FIELD} holds {size} bytes; an artifact has at most {most}. Store less.")
    data = bytearray(size)  # not in the thread: what is allocated there stays with it for long
    if len(text) > LONG_TEXT:
        return Content(data, await anyio.to_thread.run_sync(_decode, text, data))
    return Content(data, _decode(text, data))


def _decode(text: str, into: bytearray) -> str:
    """Decode a text a piece at a time, into a buffer of its size; the SHA-256."""
    last = text[-GROUP:]
    decoded_bytes = 0
    try:
        for at in range(0, len(text), PIECE):
            piece = pybase64.b64decode(text[at : at + PIECE], validate=True)
            into[decoded_bytes : decoded_bytes + len(piece)] = piece
            decoded_bytes += len(piece)
        exact = pybase64.b64encode(pybase64.b64decode(last)).decode() == last
    except ValueError:  # also for characters beyond ASCII
        decoded_bytes, exact = -1, False
    if decoded_bytes != len(into):  # also where there is padding between two pieces
        _refuse(text, "use A-Z, a-z, 0-9, + and /, padding at the end, and no spaces or line ends")
    if not exact:
        _refuse(text, "bits that the padding (=) leaves over must be zero")
    return hashlib.sha256(into).hexdigest()


def _refuse(text: str, rule: str) -> NoReturn:
    if any(one in text for one in WHITE_SPACE):
        rule = "it has no spaces or line ends; `base64 -w0` writes none"
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
