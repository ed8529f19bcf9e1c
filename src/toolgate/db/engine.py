"""One database, SQLite or PostgreSQL, behind one small class.

A piece of work on the database is one function that runs in one thread, over a plain, blocking
driver (docs/decisions/0006). Shorter ways serve what is short: reads of the embedded database and
of PostgreSQL on the event loop (0036), writes that share a commit or a statement (0035, 0038).
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from sqlalchemy import URL, Connection, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from toolgate.db.connections import POOL, engine_for
from toolgate.db.grouped_writes import GroupedWrites
from toolgate.db.outages import DatabaseTimeout, Outage
from toolgate.db.prepared import PreparedStatement, ShortReadFailed
from toolgate.db.questions import Questions, TooManyRows, answer
from toolgate.db.short_reads import ReadTooLong, ShortReads
from toolgate.db.threads import Threads
from toolgate.db.transactions import Transaction
from toolgate.db.wal import LOOK_SECONDS, is_large, shorten

if TYPE_CHECKING:
    from toolgate.db.postgres_reads import PostgresReads
    from toolgate.db.postgres_writes import PostgresWrites

ANSWER_SECONDS = (1.0, 10.0)
"""At least and at most how long the gate itself waits for its database; in between, as long as a
call may take."""
OWN_TURNS = 4
"""Writes of the gate itself at a time, on PostgreSQL: audit rows have to be stored also where every
other turn is taken by a write that waits for a row."""
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}

T = TypeVar("T")
logger = logging.getLogger(__name__)


class BadDatabaseUrl(ValueError):
    """The setting database.url names no database we can open."""


class Database:
    """The gate's database: `read` for looking, `transaction` for writing.

    `seconds`: how long a call may take. What is cancelled then is interrupted, also where the
    database has gone silent. `prepared`: whether a server is asked to prepare statements.
    """

    def __init__(self, url: str, *, seconds: float | None = None, prepared: bool = True) -> None:
        least, most = ANSWER_SECONDS
        seconds = most if seconds is None else seconds
        self.url = _url(url)
        self.dialect = self.url.get_backend_name()
        self.patience = min(max(seconds, least), most)
        engine: dict[str, Any] = {
            "patience": self.patience,
            "seconds": seconds,
            "prepared": prepared,
        }
        self._reader = engine_for(self.url, writes=False, **engine)
        self._writer = engine_for(self.url, writes=True, **engine)
        # SQLite has one writer at a time; on PostgreSQL a writer needs a connection of the pool.
        embedded = self.dialect == "sqlite"
        self._turns = anyio.Semaphore(1 if embedded else 2 * POOL - OWN_TURNS, fast_acquire=True)
        self._own_turns = self._turns if embedded else anyio.Semaphore(OWN_TURNS, fast_acquire=True)
        self._glances = ShortReads(self._reader) if self.dialect == "sqlite" else None
        short = prepared and self.dialect == "postgresql"
        self.postgres_reads, self.row_store = (
            _short_ways(self.url, self.patience, seconds) if short else (None, None)
        )
        self._threads = Threads(4 * POOL)
        self._own_threads = Threads(OWN_TURNS)
        self._reading = Outage(logger, "Reading the database")
        self._writing = Outage(logger, "Writing to the database")
        self._grouped = (
            GroupedWrites(self._writer, self._threads, self._turns, self._writing)
            if self.dialect == "sqlite"
            else None
        )

    async def read(self, look: Callable[[Connection], T], *, quick: bool = False) -> T:
        """Run a function that only reads; each statement sees the newest committed state.

        `quick` is for what an embedded database usually answers sooner than a thread would begin;
        where it does not, the function is run once more, in a thread.
        """
        if quick and self._glances:
            try:
                return self._glances.read(look)
            except ReadTooLong:
                logger.debug("a read took too long for the event loop")
        with self._reading.watch():
            return await self._threads.run(self._look, look)

    async def look_up(
        self, statement: PreparedStatement, values: Mapping[str, Any], *, of_data: bool = False
    ) -> Any:
        """The one row of a look-up by key, by the names of its columns; None when there is none.

        `of_data`: of what tools work on. It never takes the way of what the gate itself looks up
        before every call, such as a key.
        """
        if not self._glances:
            return await self._look_up_in_server(statement, values, of_data=of_data)
        try:
            return self._glances.first(statement, values)
        except ReadTooLong:
            logger.debug("a look-up took too long for the event loop")
        return await self.read(lambda connection: statement.first(connection, values))

    async def _look_up_in_server(
        self, statement: PreparedStatement, values: Mapping[str, Any], *, of_data: bool
    ) -> Any:
        if self.postgres_reads is not None:
            try:
                return await self.postgres_reads.first(
                    statement, values, self.patience, of_data=of_data
                )
            except TimeoutError as late:
                raise self._silence() from late
            except ShortReadFailed as problem:
                _note_failure(problem)
        async with self.time_limit():
            return await self.read(lambda connection: statement.first(connection, values))

    async def ask(self, questions: Callable[[], Questions[T]]) -> T:
        """What is made of the answers to a few questions; each sees the newest committed state.

        For reads that are usually short. One that turns out long goes on, or is made anew, in a
        thread.
        """

        def look(connection: Connection) -> T:
            return answer(connection, questions())

        if self.postgres_reads is not None:
            try:
                return await self.postgres_reads.answer(questions)
            except TooManyRows as begun:
                look = begun.go_on
            except ShortReadFailed as problem:
                _note_failure(problem)
        return await self.read(look, quick=True)

    def _look(self, look: Callable[[Connection], T]) -> T:
        with self._reader.connect() as connection:
            return look(connection)

    @asynccontextmanager
    async def time_limit(self, *, writes: bool = False) -> AsyncGenerator[None, None]:
        """Raise `DatabaseTimeout` where the block takes longer than the database may."""
        try:
            async with asyncio.timeout(self.patience):
                yield
        except TimeoutError as late:
            raise self._silence(writes=writes) from late

    def _silence(self, *, writes: bool = False) -> DatabaseTimeout:
        """The error of a database that did not answer in time."""
        silent = DatabaseTimeout(f"no answer within {self.patience:g} s")
        (self._writing if writes else self._reading).note_failure(silent)
        return silent

    def transaction(self) -> Transaction:
        """A write that commits as a whole."""
        return Transaction(
            self._writer,
            self._threads,
            self._turns,
            self._writing,
            grouped=self._grouped,
            row_store=self.row_store,
        )

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run one function in a transaction of its own.

        For what the gate itself writes, such as audit rows: calls take neither its turns nor its
        threads.
        """
        own = Transaction(self._writer, self._own_threads, self._own_turns, self._writing)
        async with own as tx:
            return await tx.run(work)

    async def check(self) -> None:
        """Raise unless the database answers."""
        async with self.time_limit():
            await self.read(lambda connection: connection.execute(text("SELECT 1")))

    async def keep_wal_small(self) -> None:
        """Shorten what SQLite writes ahead whenever it is large, until cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.shorten_wal()

    async def shorten_wal(self) -> None:
        """Shorten what SQLite writes ahead, if it is large; while it is in use, another time."""
        if self.dialect != "sqlite" or not is_large(self.url.database):
            return
        async with self._turns:
            with contextlib.suppress(sqlite3.Error, SQLAlchemyError):
                await self._threads.finish(shorten, self._writer)

    async def close(self) -> None:
        """Close every connection."""
        if self._glances:
            self._glances.close()
        if self.row_store:
            await self.row_store.close()
        if self.postgres_reads:
            await self.postgres_reads.close()
        if self._grouped:
            self._grouped.close()
        await self._threads.close()
        await self._own_threads.close()
        self._reader.dispose()
        self._writer.dispose()


def _short_ways(
    url: URL, patience: float, seconds: float
) -> "tuple[PostgresReads, PostgresWrites] | tuple[None, None]":
    """For short reads and small writes, where the driver is there and understands the address."""
    try:
        from toolgate.db.postgres_lines import is_understood  # noqa: PLC0415
        from toolgate.db.postgres_reads import PostgresReads  # noqa: PLC0415
        from toolgate.db.postgres_writes import PostgresWrites  # noqa: PLC0415
    except ImportError:
        logger.info("PostgreSQL is slower without the package asyncpg (toolgate[postgres])")
        return None, None
    if not is_understood(url):
        logger.info("PostgreSQL is slower with parameters in database.url that asyncpg lacks")
        return None, None
    return (
        PostgresReads(url, patience=patience, seconds=seconds),
        PostgresWrites(url, patience=patience, seconds=seconds),
    )


def _note_failure(problem: ShortReadFailed) -> None:
    # Without its words: the driver tells values in them.
    logger.debug("a short read goes the usual way: %s", type(problem.__cause__).__name__)


def _url(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError) as problem:
        raise BadDatabaseUrl(
            "Setting database.url cannot be read. "
            "Write sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
        ) from problem
    if backend not in DRIVERS:
        raise BadDatabaseUrl(
            f"Setting database.url names {backend}; write sqlite:///FILE or postgresql://…"
        )
    return parsed.set(drivername=DRIVERS[backend])
