"""A read as a row of questions, apart from the connection that they are asked over.

A generator yields a statement with its values and is sent the rows. So one description of a read
serves a connection of SQLAlchemy, in a thread or within a write's transaction, and one that is used
on the event loop; and a read that turns out long can go on over the other.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection

from toolgate.db.prepared import PreparedStatement, Row

T = TypeVar("T")
Question: TypeAlias = tuple[PreparedStatement, Mapping[str, Any]]
Questions: TypeAlias = Generator[Question, Sequence[Row], T]
"""What is asked one after another, and what is made of the answers."""


def answer(connection: Connection, questions: Questions[T], rows: Sequence[Row] | None = None) -> T:
    """Ask questions over a connection; `rows`: the answer to the last one that was asked before."""
    try:
        # The first thing that a generator is sent is None.
        statement, values = next(questions) if rows is None else questions.send(rows)
        while True:
            statement, values = questions.send(statement.rows(connection, values))
    except StopIteration as end:
        return end.value


class TooManyRows(Exception):
    """A read is too long for the event loop, but not lost: it goes on in a thread."""

    def __init__(self, questions: Questions[Any], rows: Sequence[Row]) -> None:
        super().__init__()
        self._questions = questions
        self._rows = rows

    def go_on(self, connection: Connection) -> Any:
        """The result of the read."""
        return answer(connection, self._questions, self._rows)
