"""A statement for many rows at once."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, TextClause, text

from toolgate.db.prepared import PreparedWrite
from toolgate.db.row_writes import Part, statement_of, value_of


class ManyRows:
    """What is done to many rows of a table.

    PostgreSQL gets one statement, which takes the rows as one value: a statement for each row takes
    both sides several times as long. SQLite is in this process, and its driver repeats the one.
    """

    def __init__(self, part: Part, each: PreparedWrite, names: Sequence[str]) -> None:
        self._part = part
        self._each = each
        self._names = names
        self._text: TextClause = text(statement_of(part, ":rows"))

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> int:
        """Do it; how many rows it met."""
        if not rows:
            return 0
        if connection.dialect.name != "postgresql":
            named = [dict(zip(self._names, row, strict=True)) for row in rows]
            return self._each.run(connection, named)
        value = value_of(self._part, rows)
        return connection.execute(self._text, {"rows": value}).rowcount
