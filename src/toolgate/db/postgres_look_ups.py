"""Look-ups by key in PostgreSQL on the event loop itself, over connections kept for this.

The way to a thread and back takes longer than such a look-up, and so does lending a connection from
a pool. Statements are prepared on each connection once. Everything else goes the usual way, and so
does a look-up that fails here: that way knows how to tell what is wrong.
"""

import asyncio
from collections import deque, namedtuple
from collections.abc import Mapping
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import orjson
from sqlalchemy import URL
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from toolgate.db.connections import READ_ONLY, session_settings
from toolgate.db.prepared import LookUpFailed, PreparedStatement

LINES = 4
"""Connections: a look-up takes a fraction of a millisecond, so few are under way at once."""
UNDERSTOOD = {"host", "port", "sslmode", "sslcert", "sslkey", "sslrootcert", "application_name"}
"""Parameters of an address that mean the same here; with others look-ups go the usual way."""
driver: Any = asyncpg
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
DIALECT = PGDialect_asyncpg()


class Session(driver.Connection):
    """A session that is over when somebody is cancelled who waits for it.

    `asyncpg` would open another connection then to have the server stop, which a server that has
    gone silent does not answer either. The server notices that the client has left.
    """

    def _cancel_current_command(self, *waiters: "asyncio.Future[None] | None") -> None:
        self.terminate()
        for one in waiters:
            if one is not None and not one.done():
                one.set_result(None)


class Line:
    """A connection, and what is prepared on it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._prepared: dict[str, Any] = {}

    async def first(self, text: str, values: list[Any]) -> Any:
        """The first row, or None."""
        statement = self._prepared.get(text)
        if statement is None:
            statement = self._prepared[text] = await self.connection.prepare(text)
        return await statement.fetchrow(*values)


class PostgresLookUps:
    """Look-ups, each over a line that is free, in the order in which they come."""

    def __init__(self, url: URL, *, patience: float, seconds: float) -> None:
        self._address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._session = f"{session_settings(seconds)}; {READ_ONLY}"
        self.free_lines: list[Line] = []
        self.open_lines = 0
        self._waiting: deque[asyncio.Future[Line | None]] = deque()
        self._texts: dict[PreparedStatement, tuple[str, list[tuple[str, Any]], Any]] = {}
        self._patience = patience
        self._opening: set[asyncio.Task[Line]] = set()
        self._closed = False

    async def first(self, statement: PreparedStatement, values: Mapping[str, Any]) -> Any:
        """The one row by the names of its columns; None when there is none."""
        text, order, make_row = self._texts.get(statement) or self._compile(statement)
        bound = [values.get(name, written) for name, written in order]
        kept = bool(self.free_lines)
        try:
            row = await self._ask(text, bound)
        except FAILURES as problem:
            if not kept:
                raise LookUpFailed from problem
            # The server may have ended what was idle: a new connection shows whether it is back.
            self._drop_free()
            try:
                row = await self._ask(text, bound)
            except FAILURES as again:
                raise LookUpFailed from again
        return None if row is None else make_row(row)

    async def _ask(self, text: str, values: list[Any]) -> Any:
        line = self.free_lines.pop() if self.free_lines else await self._take()
        try:
            row = await line.first(text, values)
        except BaseException:
            # Also when cancelled: what it still waits for would be the next one's answer.
            line.connection.terminate()
            self._lose_line()
            raise
        self._give_back(line)
        return row

    async def _take(self) -> Line:
        if self.open_lines < LINES:
            return await self._open()
        turn: asyncio.Future[Line | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            line = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())
            raise
        return line or await self._open()

    def _give_back(self, line: Line) -> None:
        if self._closed:
            line.connection.terminate()
        else:
            self._pass_on(line)

    def _pass_on(self, line: Line | None) -> None:
        """Give a line to who waits longest, or nothing: then that one may open another."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(line)
                return
        if line is not None:
            self.free_lines.append(line)

    async def _open(self) -> Line:
        """A new line; who is cancelled leaves it to the next."""
        if self._closed:
            raise OSError("the database is closed")
        self.open_lines += 1
        # In a task of its own: `asyncpg` leaves errors behind where it is cancelled as it connects.
        opening = asyncio.create_task(self._connect())
        self._opening.add(opening)
        try:
            line = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._keep)
            raise
        except BaseException:
            self._opening.discard(opening)
            self._lose_line()
            raise
        self._opening.discard(opening)
        return line

    async def _connect(self) -> Line:
        connection: Any = await driver.connect(
            self._address,
            timeout=self._patience,
            statement_cache_size=0,
            connection_class=Session,
        )
        try:
            async with asyncio.timeout(self._patience):
                await connection.execute(self._session)
                await connection.set_type_codec(
                    "json", schema="pg_catalog", encoder=str, decoder=orjson.loads
                )
        except BaseException:
            connection.terminate()
            raise
        return Line(connection)

    def _keep(self, opening: "asyncio.Task[Line]") -> None:
        """Take over a line that nobody waits for any more."""
        self._opening.discard(opening)
        if opening.cancelled() or opening.exception() is not None:
            self._lose_line()
        else:
            self._give_back(opening.result())

    def _lose_line(self) -> None:
        self.open_lines -= 1
        self._pass_on(None)

    def _compile(self, statement: PreparedStatement) -> tuple[str, list[tuple[str, Any]], Any]:
        compiled = statement.statement.compile(dialect=DIALECT)
        order = [(name, compiled.params[name]) for name in compiled.positiontup or ()]
        names = [str(one.name) for one in statement.statement.selected_columns]
        row: Any = namedtuple("Row", names)  # pyright: ignore[reportUntypedNamedTuple]
        self._texts[statement] = made = (str(compiled), order, row._make)
        return made

    def _drop_free(self) -> None:
        for line in self.free_lines:
            line.connection.terminate()
        self.open_lines -= len(self.free_lines)
        self.free_lines.clear()

    async def close(self) -> None:
        """End every connection."""
        self._closed = True
        self._drop_free()
        for one in self._opening:
            one.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)


def can_look_up(url: URL) -> bool:
    """Whether an address means the same to both drivers."""
    return set(url.query) <= UNDERSTOOD
