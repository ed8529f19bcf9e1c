"""Log lines of commands: on standard error, so that standard output is the answer alone."""

import logging
import sys
from typing import Any

FORMAT = "%(levelname)s %(name)s: %(message)s"


class OneLineFormatter(logging.Formatter):
    """A log line without its traceback: a person runs one command and reads one sentence."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 (the library's name)
        """The error itself."""
        return f"{type(ei[1]).__name__}: {ei[1]}" if ei[1] else ""

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line."""
        return " ".join(super().format(record).split())


def log_defects_only() -> None:
    """For commands that do one thing and end: defects only, the rest is in the answer."""
    _to_stderr(OneLineFormatter(FORMAT), logging.ERROR)
    # A server's level, where one ran in this process before, is not a command's.
    logging.getLogger("toolgate").setLevel(logging.NOTSET)


def log_tracebacks() -> None:
    """For a command that runs somebody's code, at level `debug`: all that is logged, in full."""
    _to_stderr(logging.Formatter(FORMAT), logging.WARNING)
    logging.getLogger("toolgate").setLevel(logging.DEBUG)


def _to_stderr(formatter: logging.Formatter, level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
