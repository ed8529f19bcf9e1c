"""Standard streams that are closed, or whose reader went away (`toolgate tools | head -1`)."""

import os
import sys

READER_GONE = 1
"""The same as Click's, which meets a reader that is gone while a command still writes."""


def open_closed_streams() -> None:
    """Open what was closed: else the next file, such as the database, would be standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def flush_streams(code: int) -> int:
    """Write what waits; a reader that is gone is told by the exit code, not by a traceback."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] (it was closed)
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python writes once more when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    return code
