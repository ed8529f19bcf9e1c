"""Short reads of the embedded database, on the event loop itself.

The way to a thread and back takes longer than most reads. How long a read takes is known only when
it is done, so each is begun here and stopped when its time is over; it then has to be made anew in
a thread, where it holds up nobody.
"""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

SECONDS = 0.002
STEPS = 1000
"""Instructions of SQLite's machine between two looks at the clock; some 50 µs."""

T = TypeVar("T")


class ReadTooLong(Exception):
    """The read was stopped; it changed nothing and can be made anew."""


class ShortReads:
    """Reads on a connection that is kept open for this: lending one costs more than a read."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader
        self._kept: Connection | None = None
        self._ends = 0.0
        self._stopped = False

    def read(self, look: Callable[[Connection], T]) -> T:
        """What the function finds; raises `ReadTooLong` when that takes too long."""
        connection = self._kept or self._open()
        self._ends = time.perf_counter() + SECONDS
        self._stopped = False
        try:
            return look(connection)
        except BaseException as problem:
            if self._stopped:
                raise ReadTooLong from problem
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _open(self) -> Connection:
        self._kept = self._reader.connect()
        driver: Any = self._kept.connection.dbapi_connection
        driver.set_progress_handler(self._stop, STEPS)
        return self._kept

    def _stop(self) -> bool:
        """SQLite asks this now and then, and ends the statement if the answer is yes."""
        self._stopped = time.perf_counter() > self._ends
        return self._stopped
