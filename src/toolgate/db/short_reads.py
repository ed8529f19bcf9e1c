"""Short reads of the embedded database, on the event loop itself.

The way to a thread and back takes longer than most reads. How long a read takes is known only when
it is done, so each is begun here and stopped when its time is over; it then has to be made anew in
a thread, where it holds up nobody.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection, Engine

from toolgate.db.prepared import CompiledStatement, PreparedStatement

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
        self._driver: Any = None
        self._compiled: dict[PreparedStatement, CompiledStatement] = {}
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
            self._raise(problem)

    def first(self, statement: PreparedStatement, values: Mapping[str, Any]) -> Any:
        """The one row of a look-up, or None; the same with fewer steps, since it is for every call.

        Raises `ReadTooLong` when that takes too long.
        """
        if self._kept is None:
            self._open()
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = statement.compile(self._reader.dialect)
        self._ends = time.perf_counter() + SECONDS
        self._stopped = False
        try:
            return compiled.first(self._driver, values)
        except BaseException as problem:
            self._raise(problem)

    def _raise(self, problem: BaseException) -> NoReturn:
        """End the connection, and tell why.

        Python 3.11 compiles a statement that was stopped anew each time it is run on the same
        connection, which costs more than a look-up.
        """
        self.close()
        if self._stopped:
            raise ReadTooLong from problem
        raise problem

    def close(self) -> None:
        """End the connection; nobody else could use it, since it stops what takes too long."""
        if self._kept is not None:
            self._kept.invalidate()
            self._kept.close()
            self._kept = self._driver = None

    def _open(self) -> Connection:
        kept = self._reader.connect()
        self._driver = kept.connection.dbapi_connection
        self._driver.set_progress_handler(self._stop, STEPS)
        self._kept = kept
        return kept

    def _stop(self) -> bool:
        """SQLite asks this now and then, and ends the statement if the answer is yes."""
        self._stopped = time.perf_counter() > self._ends
        return self._stopped
