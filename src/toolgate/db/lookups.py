"""Look-ups by key: one row or none.

An embedded database answers them in microseconds; there, SQLAlchemy's way to run a statement costs
six times as much as the look itself. So the statement is compiled once and run on the driver.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Dialect, Select
from sqlalchemy.exc import DBAPIError


class LookUp:
    """A statement with named parameters that finds at most one row."""

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self._compiled: dict[str, Compiled] = {}

    def on(self, dialect: Dialect) -> "Compiled":
        """The statement in the words of a driver."""
        known = self._compiled.get(dialect.name)
        if known is None:
            known = self._compiled[dialect.name] = Compiled(self.statement, dialect)
        return known


class Compiled:
    """The text of a look-up, the order of its values, and what its columns need."""

    def __init__(self, statement: Select[Any], dialect: Dialect) -> None:
        self._dialect = dialect
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        # What is written into the statement is a parameter for the driver too.
        self._order = [(name, compiled.params[name]) for name in compiled.positiontup or ()]
        columns = list(statement.selected_columns)
        names = [str(one.name) for one in columns]
        self._made: Any = namedtuple("Row", names)._make  # pyright: ignore[reportUntypedNamedTuple]
        self._processors = [
            (number, process)
            for number, one in enumerate(columns)
            if (process := _processor(one.type, dialect))
        ]

    def first(self, connection: Any, values: Mapping[str, Any]) -> Any:
        """The row as the statement names its columns, or None."""
        given = [values.get(name, written) for name, written in self._order]
        try:
            found = connection.execute(self.text, given).fetchall()
        except self._dialect.loaded_dbapi.Error as problem:
            raise self._told(problem) from problem
        if not found:
            return None
        if not self._processors:
            return self._made(found[0])
        row = list(found[0])
        for number, process in self._processors:
            row[number] = process(row[number])
        return self._made(row)

    def _told(self, problem: Exception) -> BaseException:
        """The driver's error as SQLAlchemy tells it, without the values."""
        kind = self._dialect.loaded_dbapi.Error
        return DBAPIError.instance(
            self.text, None, problem, kind, hide_parameters=True, dialect=self._dialect
        )


def _processor(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    """What SQLAlchemy does with a value of this type when it comes from the driver."""
    return kind.dialect_impl(dialect).result_processor(dialect, None)
