"""Statements that are compiled once.

SQLAlchemy looks at the whole of a statement each time it runs it. For a look-up by key that takes
six times as long as the look itself, for a page of a list as long as reading the page. In a thread,
PostgreSQL is asked as SQLAlchemy does it: there the way to the server counts.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Delete,
    Dialect,
    Float,
    Insert,
    Numeric,
    Select,
    TextClause,
    Update,
)
from sqlalchemy.exc import DBAPIError

Row = Sequence[Any]
Binders = Sequence[tuple[str, Callable[[Any], Any] | None]]
"""Parameters in their order, each with what its type makes of a value."""


class ShortReadFailed(Exception):
    """A read did not succeed on the short way; the usual one will, or will say why not."""


class PreparedStatement:
    """A statement that only reads, with named parameters."""

    def __init__(self, statement: Select[*tuple[Any, ...]]) -> None:
        self.statement = statement
        self._compiled: dict[str, CompiledStatement] = {}

    def compile(self, dialect: Dialect) -> "CompiledStatement":
        """The statement in the words of a driver."""
        compiled = self._compiled.get(dialect.driver)
        if compiled is None:
            compiled = self._compiled[dialect.driver] = CompiledStatement(self.statement, dialect)
        return compiled

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The one row by the names of its columns, or None."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self.statement, values).first()
        driver = connection.connection.dbapi_connection
        return self.compile(connection.dialect).first(driver, values)

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Row]:
        """Every row, in the order of the columns."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self.statement, values).all()
        return self.compile(connection.dialect).rows(connection, values)


class CompiledStatement:
    """The text of a statement, the order of its values, and what its columns need."""

    def __init__(self, statement: Select[*tuple[Any, ...]], dialect: Dialect) -> None:
        self._dialect = dialect
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        # What is written into the statement is a parameter for the driver too.
        self._names = list(compiled.positiontup or ())
        self._written = [compiled.params[name] for name in self._names]
        columns = list(statement.selected_columns)
        names = [str(one.name) for one in columns]
        self._row: Any = namedtuple("Row", names)  # pyright: ignore[reportUntypedNamedTuple]
        self._processors = [
            (number, process)
            for number, one in enumerate(columns)
            if (process := _processor(one.type, dialect))
        ]

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Row]:
        """Every row; asked of the driver itself."""
        return self.processed(self._fetch(connection.connection.dbapi_connection, values))

    def first(self, driver: Any, values: Mapping[str, Any]) -> Any:
        """The one row by the names of its columns, or None; asked of the driver itself."""
        rows = self._fetch(driver, values)
        return self.named(rows[0]) if rows else None

    def _fetch(self, driver: Any, values: Mapping[str, Any]) -> Sequence[Row]:
        try:
            return driver.execute(self.text, self.bind(values)).fetchall()
        except self._dialect.loaded_dbapi.Error as problem:
            raise translated(problem, self.text, self._dialect) from problem

    def processed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Rows of the driver with values as SQLAlchemy has them."""
        return [self._process(row) for row in rows] if self._processors else rows

    def named(self, row: Row) -> Any:
        """A row of the driver by the names of its columns."""
        # Not `_make`, which is one more function for every look-up.
        values = self._process(row) if self._processors else row
        return tuple.__new__(self._row, values)  # pyright: ignore[reportUnknownMemberType]

    def bind(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Values in the order in which the driver wants them."""
        return tuple(map(values.get, self._names, self._written))

    def _process(self, row: Row) -> Row:
        values = list(row)
        for number, process in self._processors:
            values[number] = process(values[number])
        return values


def translated(problem: Exception, text: str, dialect: Dialect) -> BaseException:
    """The driver's error as SQLAlchemy tells it, without the values."""
    kind = dialect.loaded_dbapi.Error
    return DBAPIError.instance(text, None, problem, kind, hide_parameters=True, dialect=dialect)


class PreparedWrite:
    """A statement that inserts, updates or deletes, with named parameters."""

    def __init__(self, statement: Insert | Update | Delete | TextClause) -> None:
        self.statement = statement
        self._compiled: dict[str, tuple[str, Binders]] = {}

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Do it for each row; how many rows it met, of a single one."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self.statement, rows).rowcount
        text, binders = self._compile(connection.dialect)
        values = [
            tuple([bind(row[name]) if bind else row[name] for name, bind in binders])
            for row in rows
        ]
        driver: Any = connection.connection.dbapi_connection
        try:
            if len(values) == 1:
                return driver.execute(text, values[0]).rowcount
            return driver.executemany(text, values).rowcount
        except connection.dialect.loaded_dbapi.Error as problem:
            raise translated(problem, text, connection.dialect) from problem

    def _compile(self, dialect: Dialect) -> tuple[str, Binders]:
        if dialect.name not in self._compiled:
            compiled = self.statement.compile(dialect=dialect)
            binders = [
                (name, compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
                for name in compiled.positiontup or ()
            ]
            self._compiled[dialect.name] = (str(compiled), binders)
        return self._compiled[dialect.name]


def _processor(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    """What SQLAlchemy does with a value of this type when it comes from the driver."""
    if dialect.driver == "asyncpg" and isinstance(kind, Numeric | Float):
        return None  # it would have to be told the type in the database; the value is right
    return kind.dialect_impl(dialect).result_processor(dialect, None)
