"""Standard input and output for the client alone."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress


@contextmanager
def claim_standard_streams() -> Generator[tuple[int, int]]:
    """Descriptors to read the client from and to write to it.

    Meanwhile everybody else in this process, and in processes it starts, reads nothing from
    standard input, and what they print goes to standard error: nothing may come between messages.
    """
    source, target = os.dup(0), os.dup(1)
    try:
        _point(0, os.open(os.devnull, os.O_RDONLY))
        _point(1, _elsewhere())
        yield source, target
    finally:
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()  # what was printed must not come out after all
        os.dup2(target, 1)
        os.dup2(source, 0)
        os.close(target)
        # The other duplicate stays open: a thread may still wait for input there.


def _point(descriptor: int, at: int) -> None:
    os.dup2(at, descriptor)
    os.close(at)


def _elsewhere() -> int:
    try:
        return os.dup(2)
    except OSError:  # there is no standard error
        return os.open(os.devnull, os.O_WRONLY)
