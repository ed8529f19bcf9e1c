"""Which statements a database is given."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from toolgate.db.postgres_lines import Line
from toolgate.db.prepared import CompiledStatement, PreparedWrite

BESIDE_CALLS = ("FROM switches", "FROM credential_changes")
"""Asked twice a second, whatever is called."""


@contextmanager
def noted_driver_reads(note: Callable[[str, Any], None]) -> Generator[None]:
    """Reads of several rows that go to the embedded database's driver itself, with their values."""
    read = CompiledStatement.rows

    def rows(self: CompiledStatement, connection: Any, values: Any) -> Sequence[Any]:
        note(self.text, self.bind(values))
        return read(self, connection, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledStatement, "rows", rows)
        yield


@contextmanager
def noted_statements() -> Generator[list[str]]:
    """Every statement, whether SQLAlchemy runs it or, for a look-up or a write, the driver itself.

    But for the savepoints of grouped writes.
    """
    statements: list[str] = []

    def note(statement: str, _: Any = None) -> None:
        if not any(one in statement for one in BESIDE_CALLS):
            statements.append(statement)

    def executed(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        note(statement)

    looked_up, written = CompiledStatement.first, PreparedWrite.run
    asked_first, asked_rows = Line.first, Line.rows

    def first(self: CompiledStatement, *given: Any) -> Any:
        note(self.text)
        return looked_up(self, *given)

    async def first_of_line(self: Line, text: str, *given: Any) -> Any:
        note(text)
        return await asked_first(self, text, *given)

    async def rows_of_line(self: Line, text: str, values: Sequence[Any]) -> Sequence[Any]:
        note(text)
        return await asked_rows(self, text, values)

    def run(self: PreparedWrite, connection: Any, rows: Any) -> int:
        if connection.dialect.name == "sqlite":
            statements.append(self._compile(connection.dialect)[0])
        return written(self, connection, rows)

    event.listen(Engine, "before_cursor_execute", executed)
    try:
        with pytest.MonkeyPatch.context() as patch, noted_driver_reads(note):
            patch.setattr(CompiledStatement, "first", first)
            patch.setattr(Line, "first", first_of_line)
            patch.setattr(Line, "rows", rows_of_line)
            patch.setattr(PreparedWrite, "run", run)
            yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
