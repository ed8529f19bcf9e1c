"""Connections to PostgreSQL that are used on the event loop itself, through `asyncpg`.

The way to a thread and back takes longer than a short statement, and so does lending a connection
from a pool. A line is a connection that is kept, with its prepared statements.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import orjson
from sqlalchemy import URL
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from toolgate.db.connections import NOTICE_LOST_CLIENTS

LINES = 4
"""Connections: a short statement takes a fraction of a millisecond, so few are under way."""
MAX_PREPARED = 100
"""Statements of a line that the server keeps: it has a plan of each in its memory."""
UNDERSTOOD = {"host", "port", "sslmode", "sslcert", "sslkey", "sslrootcert", "application_name"}
"""Parameters of an address that mean the same here."""
NOT_NEEDED = {"connect_timeout", "keepalives", "tcp_user_timeout"} | {
    f"keepalives_{one}" for one in ("idle", "interval", "count")
}
"""Of libpq's, how it finds out that a server is gone: here every statement has a time limit."""
SILENT = "the server does not answer"
driver: Any = asyncpg
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
REFUSALS = (asyncpg.DataError, asyncpg.LockNotAvailableError)
"""Of a value that is not taken, or a row that others hold: the connection is as good as before."""
DIALECT = PGDialect_asyncpg()

T = TypeVar("T")


class Session(driver.Connection):
    """A session that is over when somebody is cancelled who waits for it.

    `asyncpg` would open another connection then to have the server stop, which a server that has
    gone silent does not answer either. The server notices that the client has left.
    """

    def _cancel_current_command(self, *waiters: "asyncio.Future[None] | None") -> None:
        # Not at once: where time is over, the driver has yet to tell that who waits.
        asyncio.get_running_loop().call_soon(self.terminate)
        for one in waiters:
            if one is not None and not one.done():
                one.set_result(None)


class Line:
    """A connection, and what is prepared on it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.silent = False
        """Whether it was ended because the server did not answer in time."""
        self._prepared: dict[str, Any] = {}
        self._number = 0
        # Where a pooler mixes sessions up, a name that another one uses would run its statement.
        self._names = f"toolgate_{secrets.token_hex(8)}"

    async def first(self, text: str, values: Sequence[Any]) -> Any:
        """The first row, or None."""
        statement = self._prepared.get(text) or await self._prepare(text)
        return await statement.fetchrow(*values)

    async def rows(self, text: str, values: Sequence[Any]) -> Sequence[Any]:
        """Every row."""
        statement = self._prepared.get(text) or await self._prepare(text)
        return await statement.fetch(*values)

    def end_silence(self) -> None:
        """End the connection: who waits for an answer is told at once that none comes."""
        self.silent = True
        self.connection.terminate()

    async def _prepare(self, text: str) -> Any:
        """Have the server prepare a statement, and forget the oldest where it has many."""
        if len(self._prepared) >= MAX_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        self._number += 1
        name = f"{self._names}_{self._number}"
        statement = await self.connection.prepare(text, name=name)
        self._prepared[text] = statement
        return statement


class EveryLineHeld(OSError):
    """Others use every line, for longer than anybody waits for one."""


class Lines:
    """A few lines, lent to those who want one in the order in which they come.

    `set_up`: statements that each session begins with. `patience`: how long to wait for the server
    to accept a connection; `limit`: for its answer, where the server has gone silent; `wait`: for a
    line that others use.
    """

    def __init__(
        self,
        url: URL,
        set_up: str,
        *,
        patience: float,
        most: int = LINES,
        limit: float | None = None,
        wait: float | None = None,
    ) -> None:
        address = url.set(drivername="postgresql").difference_update_query(NOT_NEEDED)
        self._address = address.render_as_string(hide_password=False)
        self._set_up = set_up
        self._patience = patience
        self._most = most
        self._limit = limit
        self._wait = wait
        self._stuck = False
        """Somebody waited in vain, and no line has come back since."""
        self.free: list[Line] = []
        self.open = 0
        self._waiting: deque[asyncio.Future[Line | None]] = deque()
        self._opening: set[asyncio.Task[Line]] = set()
        self._closed = False

    async def use(self, work: Callable[[Line], Awaitable[T]], seconds: float | None = None) -> T:
        """Do something on a line; where it fails, or is cancelled, the line is ended.

        `seconds`: how long the server may be silent then, unless it is `limit`. Raises
        `TimeoutError` where it is for longer.
        """
        seconds = self._limit if seconds is None else seconds
        line = self.free.pop() if self.free else await self._take_in_time(seconds)
        timer = None
        if seconds is not None:
            # Not the driver's own: it would open a connection to a silent server, to cancel.
            timer = asyncio.get_running_loop().call_later(seconds, line.end_silence)
        try:
            result = await work(line)
        except REFUSALS:
            self._give_back(line)
            raise
        except BaseException as problem:
            # Also when cancelled: what it still waits for would be the next one's answer.
            line.connection.terminate()
            if line.silent:
                self._tell_all_who_wait()
            self._lose()
            if line.silent and isinstance(problem, Exception):
                raise TimeoutError(SILENT) from problem
            raise
        finally:
            if timer is not None:
                timer.cancel()
        self._give_back(line)
        return result

    async def _take_in_time(self, seconds: float | None) -> Line:
        try:
            if self.open < self._most:
                async with asyncio.timeout(seconds):
                    return await self._open()
            line = await self._wait_for_a_line()
            async with asyncio.timeout(seconds):
                return line or await self._open()
        except TimeoutError:
            self._tell_all_who_wait()
            raise

    def drop_free(self) -> None:
        """End those that nobody uses."""
        for line in self.free:
            line.connection.terminate()
        self.open -= len(self.free)
        self.free.clear()

    async def close(self) -> None:
        """End every connection."""
        self._closed = True
        self.drop_free()
        for one in self._opening:
            one.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)

    async def _wait_for_a_line(self) -> Line | None:
        """One that others have given back; None where another one may be opened."""
        if self._stuck:
            raise EveryLineHeld
        turn: asyncio.Future[Line | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn if self._wait is None else await self._wait_for(turn)
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._pass_on(turn.result())
            raise

    async def _wait_for(self, turn: "asyncio.Future[Line | None]") -> "Line | None":
        try:
            async with asyncio.timeout(self._wait):
                return await turn
        except TimeoutError as late:
            self._stuck = True
            raise EveryLineHeld from late

    def _tell_all_who_wait(self) -> None:
        """The server does not answer: nobody else waits as long to find that out."""
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not turn.done():
                turn.set_exception(TimeoutError(SILENT))

    def _give_back(self, line: Line) -> None:
        self._stuck = False
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
            self.free.append(line)

    async def _open(self) -> Line:
        """A new line; who is cancelled leaves it to the next."""
        if self._closed:
            raise OSError("the database is closed")
        self.open += 1
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
            self._lose()
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
                await connection.execute(self._set_up)
                # Not on every version and system.
                with contextlib.suppress(asyncpg.PostgresError):
                    await connection.execute(NOTICE_LOST_CLIENTS)
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
            self._lose()
        else:
            self._give_back(opening.result())

    def _lose(self) -> None:
        self._stuck = False
        self.open -= 1
        self._pass_on(None)


def is_understood(url: URL) -> bool:
    """Whether an address means the same to both drivers."""
    return set(url.query) <= UNDERSTOOD | NOT_NEEDED
