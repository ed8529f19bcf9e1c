"""One database, SQLite or PostgreSQL, behind one small class.

The drivers are the plain, blocking ones: a piece of work on the database is one function that
runs in one thread, instead of one thread switch for every statement (docs/decisions/0006).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError

from toolgate.db.glances import Glances, TooLong
from toolgate.db.prepared import Prepared
from toolgate.db.threads import Threads
from toolgate.db.transactions import Transaction

BUSY_MILLISECONDS = 10_000
CACHE_KILOBYTES = 8000
"""Of each connection for reading; what SQLite takes by itself is less than one search touches."""
POOL = 10
ANSWER_SECONDS = 10
POSTGRESQL = {
    "connect_timeout": ANSWER_SECONDS,
    # A database that went silent must not hold a thread for ever.
    "tcp_user_timeout": ANSWER_SECONDS * 1000,
}
STATEMENT_SECONDS = 60
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}

T = TypeVar("T")
logger = logging.getLogger(__name__)


class BadDatabaseUrl(ValueError):
    """The setting database.url names no database we can open."""


class Database:
    """The gate's database: `read` for looking, `transaction` for writing."""

    def __init__(self, url: str) -> None:
        self.url = _url(url)
        self.dialect = self.url.get_backend_name()
        self._reader = _engine(self.url, writes=False)
        self._writer = _engine(self.url, writes=True)
        # SQLite has one writer at a time; on PostgreSQL a writer needs a connection of the pool.
        self._turns = anyio.Semaphore(
            1 if self.dialect == "sqlite" else 2 * POOL, fast_acquire=True
        )
        self._glances = Glances(self._reader) if self.dialect == "sqlite" else None
        self._threads = Threads(4 * POOL)

    async def read(self, look: Callable[[Connection], T], *, quick: bool = False) -> T:
        """Run a function that only reads; each statement sees the newest committed state.

        `quick` is for what an embedded database usually answers sooner than a thread would begin;
        where it does not, the function is run once more, in a thread.
        """
        if quick and self._glances:
            try:
                return self._glances.read(look)
            except TooLong:
                logger.debug("a read took too long for the event loop")
        return await self._threads.run(self._look, look)

    async def look_up(self, wanted: Prepared, values: Mapping[str, Any]) -> Any:
        """The one row of a look-up by key, by the names of its columns; None when there is none."""
        if not self._glances:
            return await self.read(
                lambda connection: connection.execute(wanted.statement, values).first()
            )

        def look(connection: Connection) -> Any:
            driver = connection.connection.dbapi_connection
            return wanted.on(connection.dialect).first(driver, values)

        return await self.read(look, quick=True)

    def _look(self, look: Callable[[Connection], T]) -> T:
        with self._reader.connect() as connection:
            return look(connection)

    def transaction(self) -> Transaction:
        """A write that commits as a whole."""
        return Transaction(self._writer, self._threads, self._turns)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run one function in a transaction of its own."""
        async with self.transaction() as tx:
            return await tx.run(work)

    async def check(self) -> None:
        """Raise unless the database answers."""
        await self.read(lambda connection: connection.execute(text("SELECT 1")))

    async def close(self) -> None:
        """Close every connection."""
        if self._glances:
            self._glances.close()
        self._reader.dispose()
        self._writer.dispose()
        self._threads.close()


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


def _engine(url: URL, *, writes: bool) -> Engine:
    """Connections for writing, or ones that refuse every write, whatever a handler tries."""
    options: dict[str, Any] = {
        "json_serializer": _to_json,
        "json_deserializer": orjson.loads,
    }
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, **options, connect_args={"check_same_thread": False})
        listeners = [_open_sqlite] if writes else [_open_sqlite, _read_only_sqlite]
        if writes:
            event.listen(engine, "begin", _begin_sqlite)
    else:
        engine = create_engine(url, **options, **_postgresql(writes=writes))
        listeners = [_open_postgresql] if writes else [_open_postgresql, _read_only_postgresql]
    for listener in listeners:
        event.listen(engine, "connect", listener)
    return engine


def _postgresql(*, writes: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "pool_size": POOL,
        "max_overflow": POOL,
        "pool_timeout": ANSWER_SECONDS,
        "pool_pre_ping": True,
        "connect_args": POSTGRESQL,
    }
    return options if writes else options | {"isolation_level": "AUTOCOMMIT"}


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _open_sqlite(connection: Any, _: Any) -> None:
    # The driver's own transaction handling begins late and cannot take the write lock at once;
    # we say BEGIN ourselves.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _open_postgresql(connection: Any, _: Any) -> None:
    # As statements, and not as start-up options, which poolers between us may refuse.
    _set(connection, f"SET statement_timeout = '{STATEMENT_SECONDS}s'")


def _read_only_sqlite(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")


def _read_only_postgresql(connection: Any, _: Any) -> None:
    _set(connection, "SET default_transaction_read_only = on")


def _set(connection: Any, statement: str) -> None:
    before, connection.autocommit = connection.autocommit, True
    connection.execute(statement)
    connection.autocommit = before


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
