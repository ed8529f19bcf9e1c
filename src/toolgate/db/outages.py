"""A database that fails: told when it begins, once a minute, and when it is over."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as NoConnection

from toolgate.db.messages import GENERAL
from toolgate.db.tables import metadata
from toolgate.db.threads import ThreadsClosed
from toolgate.throttled_log import ThrottledLog

QUIET_SECONDS = 5.0
"""So long nothing fails before an outage is over: where one thing works and another does not, it is
not over each time the one does."""
OF_THE_STATEMENT = (IntegrityError, DataError, ProgrammingError, NotSupportedError)
CANCELLED = "57014"
"""SQLSTATE of a statement that was stopped: by us, by its time limit or by an operator."""
CANCELLED_BY_US = (CANCELLED, "SQLITE_INTERRUPT")
CUT_OFF = ("08", "57")
"""Classes of SQLSTATE after which it is not known what became of a commit: the connection failed,
or an operator ended it."""


NO_TABLE = re.compile(r"no such table: (?:main\.)?(\w+)")
OF_THE_FILE = ("unable to", "cannot ")
"""How SQLite's general errors begin that are none of the statement."""

UNWORDED: dict[type[BaseException], str] = {
    asyncio.CancelledError: "it was stopped before it had ended",
    TimeoutError: "no answer in time",
}


class DatabaseTimeout(NoConnection):
    """The database did not answer in time."""


def code_of(error: DBAPIError) -> str | None:
    """The database's own code for an error; None where none came from it."""
    origin = error.orig
    code = getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None)
    return code if isinstance(code, str) else None


def is_outage(error: BaseException) -> bool:
    """Whether the database fails, and not what was asked of it."""
    if isinstance(error, NoConnection | ThreadsClosed | InterfaceError):
        return True
    if not isinstance(error, DatabaseError) or isinstance(error, OF_THE_STATEMENT):
        return False
    return code_of(error) not in CANCELLED_BY_US and not _is_unreadable_statement(error)


def _is_unreadable_statement(error: DBAPIError) -> bool:
    """Whether SQLite does not understand a statement, or lacks a table that it names.

    Other databases say so by the type of the error. Where one of the gate's own tables is gone, it
    is another database.
    """
    if code_of(error) != GENERAL:
        return False
    words = str(error.orig)
    if table := NO_TABLE.match(words):
        return table[1] not in metadata.tables
    return not words.startswith(OF_THE_FILE)


def is_nul_refused(error: BaseException) -> bool:
    """Whether PostgreSQL refused a text because of the character U+0000 in it."""
    return isinstance(error, DataError) and "NUL (0x00)" in str(error.orig)


def is_rejected_by_server(error: DBAPIError) -> bool:
    """Whether a commit that failed is known to have stored nothing."""
    code = code_of(error)
    return code is not None and not code.startswith(CUT_OFF)


def is_statement_cancelled(error: DBAPIError) -> bool:
    """Whether the server stopped a statement: one that is a transaction of its own stored nothing.

    Of a COMMIT that is not known.
    """
    return code_of(error) == CANCELLED


def describe(error: BaseException) -> str:
    """One line on what is wrong."""
    origin = error.orig if isinstance(error, DBAPIError) and error.orig else error
    words = " ".join(str(origin).split())
    return words or UNWORDED.get(type(origin), type(origin).__name__)


class Outage:
    """Whether something fails at present; the log has a few lines for it, not one for each time."""

    def __init__(
        self,
        logger: logging.Logger,
        what: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = ThrottledLog(logger, clock=clock)
        self._what = what
        self._clock = clock
        self._last = 0.0
        self.on = False
        """Whether it failed and has not worked for a while since."""

    def note_failure(self, error: BaseException) -> None:
        """Note a failure."""
        self.on = True
        self._last = self._clock()
        self._log.record("%s fails: %s", self._what, describe(error))

    def note_success(self) -> None:
        """Note that it works; where it failed, for long enough to believe it."""
        if self.on and self._clock() - self._last >= QUIET_SECONDS:
            self.on = False
            self._log.end("%s works again", self._what)

    @contextmanager
    def watch(self) -> Generator[None, None, None]:
        """Note how the block ends."""
        try:
            yield
        except Exception as error:
            if is_outage(error):
                self.note_failure(error)
            raise
        else:
            if self.on:
                self.note_success()
