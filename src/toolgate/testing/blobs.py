"""Blobs in memory, for tests."""

import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from toolgate.ports.blobs import BlobDigest, BlobMissing, Data, StoredBlob, check_name


class MemoryBlobs:
    """Keeps blobs in a dictionary."""

    def __init__(self) -> None:
        self.stored: dict[str, tuple[bytes, float]] = {}

    async def put(self, name: str, data: Data) -> None:
        """Store a blob."""
        check_name(name)
        self.stored[name] = (bytes(data), time.time())

    async def read(self, name: str) -> AsyncGenerator[Data]:
        """The bytes, in one piece."""
        check_name(name)
        if name not in self.stored:
            raise BlobMissing(name)
        yield self.stored[name][0]

    async def digest(self, name: str) -> BlobDigest:
        """Its length and SHA-256."""
        data = b"".join([bytes(piece) async for piece in self.read(name)])
        return BlobDigest(len(data), hashlib.sha256(data).hexdigest())

    async def delete(self, name: str) -> None:
        """Delete a blob, if there is one."""
        check_name(name)
        self.stored.pop(name, None)

    async def pages(self) -> AsyncIterator[Sequence[StoredBlob]]:
        """All at once."""
        yield [StoredBlob(name, len(data), at) for name, (data, at) in self.stored.items()]

    async def remove_unfinished(self, before: float) -> int:  # noqa: ARG002
        """Nothing is ever unfinished here."""
        return 0

    async def check(self, *, used: bool = False) -> None:
        """It always answers."""
