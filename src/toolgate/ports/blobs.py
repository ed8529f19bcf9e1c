"""Blobs: bytes under a name, written once, read in pieces and never changed.

A blob cannot join a transaction. Who keeps a row for each writes the blob first, under a name of
its own, and the row after it; a blob that nobody has a row for can be removed later.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolgate.ports.documents import StoreUnavailable

NAME = re.compile(r"[a-z0-9_-]{1,64}(/[a-z0-9_-]{1,64}){0,7}")
"""What a blob is called: good for every store, and in no way a caller's choice."""
Data = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as the store lists it."""

    name: str
    size: int
    modified: float
    """When it was written, by the store's clock, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class BlobDigest:
    """What tells whether a blob is as it was stored."""

    size: int
    sha256: str
    """In hexadecimal."""


class BlobMissing(Exception):
    """There is no blob of this name."""


class BlobsRefused(StoreUnavailable):
    """The store answers, but refuses the credentials, or has no such bucket."""


class Blobs(Protocol):
    """The blobs of one pack.

    Every method raises `StoreUnavailable` (`ports/documents.py`) when the store does not answer.
    """

    async def put(self, name: str, data: Data) -> None:
        """Store a blob under a new name: whole or not at all, and to stay when this returns."""
        ...

    def read(self, name: str) -> AsyncGenerator[Data]:
        """Its bytes, piece by piece; raises `BlobMissing` before the first.

        One that has begun is read to its end, even if the blob is deleted meanwhile.
        """
        ...

    async def digest(self, name: str) -> BlobDigest:
        """How many bytes it has, and their digest; raises `BlobMissing`."""
        ...

    async def delete(self, name: str) -> None:
        """Delete a blob, if there is one."""
        ...

    def pages(self) -> AsyncIterator[Sequence[StoredBlob]]:
        """Every blob that is whole, in any order, some at a time."""
        ...

    async def remove_unfinished(self, before: float) -> int:
        """Remove what was begun before this time and never became a blob; how many there were."""
        ...

    async def check(self, *, used: bool = False) -> None:
        """Raise `StoreUnavailable` unless the store answers; one that was used is not empty."""
        ...


def check_name(name: str) -> None:
    """Raise ValueError for what no blob is called."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a blob")
