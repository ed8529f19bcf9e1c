"""Short reads of PostgreSQL on the event loop itself: look-ups by key, and a few questions.

What fails here is read again the usual way, in a thread: that way knows how to tell what is wrong.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import URL

from toolgate.db.connections import READ_ONLY, STATEMENT_SECONDS, session_settings
from toolgate.db.postgres_lines import DIALECT, FAILURES, REFUSALS, Line, Lines
from toolgate.db.prepared import PreparedStatement, ShortReadFailed
from toolgate.db.questions import Questions, TooManyRows

MAX_ROWS = 200
"""Of one read, on the event loop: what is made of more takes milliseconds, which others wait."""
WAIT_SECONDS = 0.1
"""How long reads of data wait for a line: the usual way is open, and slow ones may hold lines."""

T = TypeVar("T")


class PostgresReads:
    """Reads, each over a line that is free.

    What is asked of data, such as documents, has lines of its own: where it is slow, or others hold
    a table, that must not keep the gate from looking up a key.
    """

    def __init__(self, url: URL, *, patience: float, seconds: float) -> None:
        set_up = f"{session_settings(seconds)}; {READ_ONLY}"
        limit = max(STATEMENT_SECONDS, seconds) + patience
        self.look_ups = Lines(url, set_up, patience=patience, limit=limit)
        self.lines = Lines(url, set_up, patience=patience, limit=limit, wait=WAIT_SECONDS)

    async def first(
        self,
        statement: PreparedStatement,
        values: Mapping[str, Any],
        seconds: float,
        *,
        of_data: bool = False,
    ) -> Any:
        """The one row by the names of its columns; None when there is none.

        Raises `TimeoutError` where the server does not answer within so many seconds. `of_data`:
        over the lines of questions.
        """
        compiled = statement.compile(DIALECT)
        bound = compiled.bind(values)
        lines = self.lines if of_data else self.look_ups
        row = await _use(lines, lambda line: line.first(compiled.text, bound), seconds)
        return None if row is None else compiled.named(row)

    async def answer(self, questions: Callable[[], Questions[T]]) -> T:
        """What is made of the answers; raises `TooManyRows` for a read that is not short."""
        try:
            done, asked, rows = await _use(self.lines, lambda line: _ask(line, questions()))
        except TimeoutError as late:
            raise ShortReadFailed from late
        if done:
            return rows
        raise TooManyRows(asked, rows)

    async def close(self) -> None:
        """End every connection."""
        await self.look_ups.close()
        await self.lines.close()


async def _ask(line: Line, questions: Questions[Any]) -> tuple[bool, Questions[Any], Any]:
    """Ask over a line: whether that was all, and its result or the rows that are too many."""
    try:
        statement, values = next(questions)
        left = MAX_ROWS
        while True:
            compiled = statement.compile(DIALECT)
            found = await line.rows(compiled.text, compiled.bind(values))
            rows = compiled.processed(found)
            left -= len(rows)
            if left < 0:
                return False, questions, rows
            statement, values = questions.send(rows)
    except StopIteration as end:
        return True, questions, end.value


async def _use(
    lines: Lines, work: Callable[[Line], Awaitable[T]], seconds: float | None = None
) -> T:
    kept = bool(lines.free)
    try:
        return await lines.use(work, seconds)
    except TimeoutError:
        raise
    except FAILURES as problem:
        if not kept or isinstance(problem, REFUSALS):
            raise ShortReadFailed from problem
        # The server may have ended what was idle: a new connection shows whether it is back.
        lines.drop_free()
        try:
            return await lines.use(work, seconds)
        except TimeoutError:
            raise
        except FAILURES as again:
            raise ShortReadFailed from again
