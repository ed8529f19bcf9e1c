"""An artifact's bytes: from base64, strictly, and back from the store, checked.

Ten MiB are decoded and hashed a piece at a time, so that others have their turn in between and no
further copy is made.
"""

import binascii
import hashlib
from collections.abc import AsyncIterator
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


async def read_checked(blobs: Blobs, name: str, size: int, checksum: str) -> bytes:
    """A blob's bytes; raises `Damaged` unless they are those that were stored."""
    data, digest, at = bytearray(size), hashlib.sha256(), 0
    async for piece in _pieces(blobs, name, size):
        data[at : at + len(piece)] = piece
        at += len(piece)
        digest.update(piece)
    if at != size or digest.hexdigest() != checksum:
        raise Damaged(name)
    return bytes(data)


async def _pieces(blobs: Blobs, name: str, size: int) -> AsyncIterator[Data]:
    """The pieces of a blob that is no longer than it may be."""
    at = 0
    async for piece in blobs.read(name):
        at += len(piece)
        if at > size:
            raise Damaged(name)
        yield piece
