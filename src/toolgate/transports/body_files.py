"""Temporary files for the bodies of requests that are too large to wait in memory."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

SPARE_BYTES = 32 * 1024 * 1024
"""What is left on the disk for everybody else: the database cannot write without any."""
NOT_POSSIBLE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


class BodyFile:
    """A file without a name, as long as a body is said to be; errors are those of the system."""

    def __init__(self, folder: Path, length: int) -> None:
        if shutil.disk_usage(folder).free < length + SPARE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (see __exit__)
        try:
            _reserve(self._file.fileno(), length)
        except OSError:
            self._file.close()
            raise

    def __enter__(self) -> "BodyFile":
        """It is gone at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        """Write all of it: the system may take less at once."""
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def read(self) -> bytes:
        """All that was written."""
        size = self._file.tell()
        self._file.seek(0)
        parts: list[bytes] = []
        while size > 0 and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _reserve(descriptor: int, length: int) -> None:
    """Take the room on the disk now, where that is possible: not many count on the same then."""
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is None:
        return
    try:
        reserve(descriptor, 0, length)
    except OSError as problem:
        if problem.errno not in NOT_POSSIBLE:
            raise
