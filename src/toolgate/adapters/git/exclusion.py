"""One writer of a repository at a time, over all processes of this machine."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NAME = "toolgate.lock"


@contextmanager
def exclusive(folder: Path) -> Generator[None]:
    """Wait for one's turn; the system ends the turn of a process that is killed."""
    held = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(held)
        yield
    finally:
        os.close(held)


def _lock(held: int) -> None:
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows: the lock of the branch is all there is
        return
    fcntl.flock(held, fcntl.LOCK_EX)
