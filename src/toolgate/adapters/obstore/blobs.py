"""Blobs in a folder or in a bucket of S3: one adapter, two places."""

import contextlib
import errno
import hashlib
import os
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, S3Store

from toolgate.ports.blobs import BlobDigest, BlobMissing, BlobsRefused, Data, StoredBlob, check_name
from toolgate.ports.documents import StoreUnavailable

PIECE_BYTES = 512 * 1024
"""Threads read them, and the memory of each keeps some."""
PAGE = 500
PRIVATE_FOLDER, PRIVATE_FILE, OF_OTHERS = 0o700, 0o600, 0o077
UNFINISHED = re.compile(r".*#[0-9]+")
"""How the library calls a file that it is writing; it neither lists nor removes one that is left
over."""
CONNECT_SECONDS, REQUEST_SECONDS, RETRY_SECONDS = 5, 30, 20
RETRIES = 2
REFUSED = "The blob store refuses the credentials (settings blobs.*)."
MISSING = "The folder or bucket of blobs is not there (setting blobs.url)."
STATUS = re.compile(r"status code: (\d{3})\b")
"""How the library's general errors name what S3 answered: lists have no errors of their own."""
REFUSALS = {"401": REFUSED, "403": REFUSED, "404": MISSING}
EMPTY = (
    "The blob store is empty, though blobs were stored there: its disk may not be mounted, or "
    "another is in its place (setting blobs.url)."
)
SILENT = "The blob store cannot be used now. Try again later."
FULL = "The disk of the blobs is full (setting blobs.url). Make room there, then try again."
NO_ROOM = re.compile(r"os error (28|122)\b")
"""How the library's errors name what the system says of a full disk, or a used-up quota."""


class ObstoreBlobs:
    """The blobs below one folder, or one prefix of a bucket."""

    def __init__(self, store: LocalStore | S3Store | None, folder: Path | None) -> None:
        self._opened = store
        self._folder = folder
        """Of blobs in files; the first blob makes it."""

    @property
    def _store(self) -> LocalStore | S3Store:
        if self._opened is None:
            assert self._folder is not None
            self._opened = LocalStore(self._folder)
        return self._opened

    async def put(self, name: str, data: Data) -> None:
        """Store a blob; in files, it is on the disk when this returns."""
        check_name(name)
        with _told():
            if self._folder is not None:
                # The library would make them, and the file, for everybody to read.
                is_first = self._opened is None
                await anyio.to_thread.run_sync(_make_private_folders, self._folder, name, is_first)
            # In one request: parts of an upload that is never completed would stay in S3.
            await obstore.put_async(self._store, name, data, use_multipart=False)
            if self._folder is not None:
                await anyio.to_thread.run_sync(_finish, self._folder / name)

    async def read(self, name: str) -> AsyncGenerator[Data]:
        """The bytes, half a MiB at a time."""
        check_name(name)
        with _told(name):
            if self._folder is not None:
                # The library reads 8 KiB at a time, which takes twenty times as long.
                async with await anyio.open_file(self._folder / name, "rb", buffering=0) as file:
                    while piece := await file.read(PIECE_BYTES):
                        yield piece
                return
            found = await obstore.get_async(self._store, name)
            async for piece in found.stream(min_chunk_size=PIECE_BYTES):
                yield memoryview(piece)

    async def digest(self, name: str) -> BlobDigest:
        """Its length and SHA-256; of a file, in a thread that reads it from end to end."""
        check_name(name)
        if self._folder is not None:
            with _told(name):
                return await anyio.to_thread.run_sync(_digest_of, self._folder / name)
        size, digest = 0, hashlib.sha256()
        async for piece in self.read(name):
            size += len(piece)
            digest.update(piece)
        return BlobDigest(size, digest.hexdigest())

    async def delete(self, name: str) -> None:
        """Delete a blob, if there is one."""
        check_name(name)
        if self._folder is not None and not self._folder.is_dir():
            return
        with contextlib.suppress(BlobMissing), _told(name):
            await obstore.delete_async(self._store, name)

    async def pages(self) -> AsyncIterator[Sequence[StoredBlob]]:
        """Every blob, some hundreds at a time."""
        if self._folder is not None and not self._folder.is_dir():
            return
        with _told():
            async for page in self._listed(PAGE):
                yield [
                    StoredBlob(one["path"], one["size"], one["last_modified"].timestamp())
                    for one in page
                ]

    async def remove_unfinished(self, before: float) -> int:
        """Remove files that were being written when a process ended; S3 keeps none."""
        if self._folder is None:
            return 0
        return await anyio.to_thread.run_sync(_remove_unfinished, self._folder, before)

    async def check(self, *, used: bool = False) -> None:
        """Ask for the first of the list; a folder must also be open for writing."""
        if self._folder is not None and not self._folder.is_dir():
            raise StoreUnavailable("The folder of blobs is not there (setting blobs.url).")
        if self._folder is not None and not os.access(self._folder, os.W_OK | os.X_OK):
            raise StoreUnavailable("The folder of blobs is not writable (setting blobs.url).")
        if used and self._folder is not None and not any(self._folder.iterdir()):
            raise StoreUnavailable(EMPTY)
        with _told():
            async for _ in self._listed(1):
                return
        if used and self._folder is None:
            raise StoreUnavailable(EMPTY)

    def _listed(self, page: int) -> AsyncIterator[Sequence[Any]]:
        # One of its overloads names a library that is not installed here.
        listed: Any = obstore.list(self._store, chunk_size=page)  # pyright: ignore[reportUnknownMemberType]
        return listed


def file_blobs(folder: Path, *, existing: bool = False) -> ObstoreBlobs:
    """Blobs in a folder for its owner alone, made now; with `existing`, at the first blob."""
    if existing:
        return ObstoreBlobs(None, folder)
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    return ObstoreBlobs(LocalStore(folder), folder)


def s3_blobs(bucket: str, prefix: str, *, endpoint: str | None, **options: Any) -> ObstoreBlobs:
    """Blobs in a bucket; options are named as in `S3Config`, and left out where they are None."""
    given = {name: value for name, value in options.items() if value is not None}
    if endpoint is not None:
        given["endpoint"] = endpoint
    store = S3Store(
        bucket,
        prefix=prefix,
        # A server of one's own has no host name for each bucket.
        virtual_hosted_style_request=endpoint is None,
        client_options={
            "allow_http": endpoint is not None and endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
        },
        retry_config={
            "max_retries": RETRIES,
            "retry_timeout": timedelta(seconds=RETRY_SECONDS),
        },
        **given,
    )
    return ObstoreBlobs(store, None)


@contextmanager
def _told(name: str = "") -> Generator[None]:
    """The port's errors in the place of the library's, whose texts name folders and hosts."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as missing:
        if name:
            raise BlobMissing(name) from missing
        raise BlobsRefused(MISSING) from missing
    except (PermissionDeniedError, UnauthenticatedError) as refused:
        raise BlobsRefused(REFUSED) from refused
    except (BaseError, OSError) as problem:
        status = STATUS.search(str(problem))
        if status and (refusal := REFUSALS.get(status[1])):
            raise BlobsRefused(refusal) from problem
        raise StoreUnavailable(FULL if _is_full(problem) else SILENT) from problem


def _is_full(problem: BaseException) -> bool:
    number = problem.errno if isinstance(problem, OSError) else None
    return number in (errno.ENOSPC, errno.EDQUOT) or bool(NO_ROOM.search(str(problem)))


def _digest_of(file: Path) -> BlobDigest:
    with file.open("rb", buffering=0) as opened:
        digest = hashlib.file_digest(opened, "sha256")
        return BlobDigest(opened.tell(), digest.hexdigest())


def _make_private_folders(folder: Path, name: str, is_first: bool) -> None:
    """Make the folders of a blob for their owner alone, and close those that others can read.

    The folder of all blobs stays as it is: an operator may have other things in it.
    """
    if is_first:
        folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    for part in name.split("/")[:-1]:
        folder /= part
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE_FOLDER)
        if sys.platform != "win32" and folder.stat().st_mode & OF_OTHERS:
            folder.chmod(PRIVATE_FOLDER)


def _finish(file: Path) -> None:
    """Close a file to others, and wait until it, and that it is there, are on the disk."""
    # Windows has no such modes, syncs no folder, and a file only for who may write it.
    if sys.platform == "win32":
        return
    file.chmod(PRIVATE_FILE)
    for path in (file, file.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_unfinished(folder: Path, before: float) -> int:
    removed = 0
    for file in folder.rglob("*#*"):
        with contextlib.suppress(OSError):
            if UNFINISHED.fullmatch(file.name) and file.stat().st_mtime < before:
                file.unlink()
                removed += 1
    return removed
