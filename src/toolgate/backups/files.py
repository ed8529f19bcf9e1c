"""The file of a backup on this machine's disk: whole under its name, or not there."""

import contextlib
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PRIVATE_FILE = 0o600
UNFINISHED = ".unfinished"


class FileInUse(Exception):
    """Another process writes the same file."""


@contextmanager
def new_file(path: Path) -> Generator[BinaryIO]:
    """A file for its owner alone that gets its name once it is whole and on the disk.

    Until then it has another one; what a killed process leaves there, the next one replaces.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    with _held(unfinished) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
    _sync_folder(path.parent)


@contextmanager
def _held(path: Path) -> Generator[BinaryIO]:
    """The file, empty, which no other process has; raises `FileInUse`."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE), "r+b")
        with file:
            _lock(file, path)
            if not _is_at(file, path):
                continue  # its owner has just finished it
            if sys.platform != "win32":
                os.fchmod(file.fileno(), PRIVATE_FILE)
            file.truncate()
            yield file
            return


def _lock(file: BinaryIO, path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415 (not on Windows)

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileInUse(f"Another process is writing {path}. Wait for it.") from None


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
