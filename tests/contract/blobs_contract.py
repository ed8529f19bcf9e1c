"""What every store of blobs does."""

import hashlib
import os
import time
import uuid

import pytest

from toolgate.ports.blobs import BlobDigest, BlobMissing, Blobs, StoredBlob

MIB = 1024 * 1024


async def whole(blobs: Blobs, name: str) -> bytes:
    return b"".join([bytes(piece) async for piece in blobs.read(name)])


async def listed(blobs: Blobs) -> dict[str, StoredBlob]:
    return {one.name: one async for page in blobs.pages() for one in page}


class BlobsContract:
    """Given the fixture `blobs`: an empty store."""

    @pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, 10 * MIB], ids=str)
    async def test_what_is_put_is_read(self, blobs: Blobs, size: int) -> None:
        data = os.urandom(size)
        await blobs.put("a/b", data)
        assert await whole(blobs, "a/b") == data
        assert await blobs.digest("a/b") == BlobDigest(size, hashlib.sha256(data).hexdigest())

    async def test_every_kind_of_bytes_is_taken(self, blobs: Blobs) -> None:
        for number, data in enumerate((b"one", bytearray(b"one"), memoryview(b"-one")[1:])):
            await blobs.put(f"n{number}", data)
            assert await whole(blobs, f"n{number}") == b"one"

    async def test_a_blob_that_is_not_there_is_missing(self, blobs: Blobs) -> None:
        await blobs.put("a/b", b"1")
        for name in ("a", "a/c", "b"):
            with pytest.raises(BlobMissing):
                await whole(blobs, name)
            with pytest.raises(BlobMissing):
                await blobs.digest(name)

    async def test_what_is_deleted_is_gone_and_deleting_again_is_no_error(
        self, blobs: Blobs
    ) -> None:
        await blobs.put("a/b", b"1")
        await blobs.delete("a/b")
        await blobs.delete("a/b")
        await blobs.delete("never/there")
        with pytest.raises(BlobMissing):
            await whole(blobs, "a/b")
        assert await listed(blobs) == {}

    async def test_an_empty_store_lists_nothing(self, blobs: Blobs) -> None:
        assert await listed(blobs) == {}
        await blobs.check()

    async def test_all_are_listed_with_size_and_time(self, blobs: Blobs) -> None:
        names = {f"f{number % 3}/{uuid.uuid4().hex}" for number in range(30)}
        for name in names:
            await blobs.put(name, b"12345")
        found = await listed(blobs)
        assert found.keys() == names
        assert {one.size for one in found.values()} == {5}
        # A server may tell whole seconds.
        assert all(abs(one.modified - time.time()) < 300 for one in found.values())

    async def test_one_that_is_being_read_is_read_to_its_end(self, blobs: Blobs) -> None:
        data = os.urandom(5 * MIB)
        await blobs.put("read", data)
        pieces = blobs.read("read")
        read = bytes(await anext(pieces))
        await blobs.delete("read")
        read += b"".join([bytes(piece) async for piece in pieces])
        assert read == data

    async def test_nothing_whole_is_unfinished(self, blobs: Blobs) -> None:
        await blobs.put("a/b", b"1")
        assert await blobs.remove_unfinished(time.time() + 3600) == 0
        assert await whole(blobs, "a/b") == b"1"

    @pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "..", "a/../b", "A", "a b", "a#1"])
    async def test_an_odd_name_is_refused(self, blobs: Blobs, name: str) -> None:
        with pytest.raises(ValueError, match="no name of a blob"):
            await blobs.put(name, b"1")
        with pytest.raises(ValueError, match="no name of a blob"):
            await whole(blobs, name)
        with pytest.raises(ValueError, match="no name of a blob"):
            await blobs.delete(name)
