"""Connections to SQLite and PostgreSQL, each of which can be interrupted from another thread."""

import contextlib
import math
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import InvalidatePoolError

from toolgate.db.messages import drop_values
from toolgate.db.threads import Interrupt, JobStopped, current_job

BUSY_SECONDS = 10.0
"""How long a writer waits for another process to end its write."""
BUSY_MILLISECONDS = 250
"""Of that in one piece: in between it looks whether anybody still waits for it."""
READER_BUSY_MILLISECONDS = 10_000
CACHE_KILOBYTES = 8000
"""Of each connection for reading; what SQLite takes by itself is less than one search touches."""
MAX_WAL_BYTES = 32 * 1024 * 1024
POOL = 10
STATEMENT_SECONDS = 60
KEEPALIVE = {
    # A database that went silent is noticed within half a minute, also where nothing is sent.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
SESSION = (
    "SELECT set_config('statement_timeout', '{statement}s', false),"
    " set_config('idle_in_transaction_session_timeout', '{idle}s', false)"
)
"""As a statement, and not as start-up options, which poolers between us may refuse."""
READ_ONLY = "SET default_transaction_read_only = on"
NOTICE_LOST_CLIENTS = "SET client_connection_check_interval = '1s'"
INTERRUPT = "toolgate.interrupt"
LINE = "toolgate.line"
USED = "toolgate.used"
SURE_SECONDS = 0.5
"""So long after its last use a connection is not asked whether it is still there."""


def engine_for(
    url: URL, *, writes: bool, patience: float, seconds: float, prepared: bool = True
) -> Engine:
    """Connections for writing, or ones that refuse every write, whatever a handler tries.

    `patience`: how long to wait for a connection; `seconds`: how long a call may take; `prepared`:
    whether a server may be asked to prepare statements.
    """
    options: dict[str, Any] = {
        "json_serializer": to_json,
        "json_deserializer": _from_json,
        "hide_parameters": True,
    }
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, **options, connect_args={"check_same_thread": False})
        if url.database not in (None, "", ":memory:"):
            event.listen(engine, "do_connect", _refuse_missing_file(Path(url.database)))
        event.listen(engine, "connect", _open_sqlite)
        event.listen(engine, "connect", _write_sqlite if writes else _read_sqlite)
        if writes:
            event.listen(engine, "begin", _begin_sqlite)
    else:
        engine = create_engine(
            url, **options, **_postgresql(url, patience, prepared, writes=writes)
        )
        _Sockets(engine, writes=writes, seconds=seconds)
    event.listen(engine, "checkout", _check_out)
    event.listen(engine, "checkin", _check_in)
    event.listen(engine, "handle_error", _drop_values)
    return engine


def _refuse_missing_file(file: Path) -> Callable[..., None]:
    """Refuses to connect once the file is gone: SQLite would make an empty one in its place."""
    there = file.exists()

    def look(*_: Any) -> None:
        nonlocal there
        if file.exists():
            there = True
        elif there:
            raise sqlite3.OperationalError("the database file is gone")

    return look


def interrupt_of(connection: Connection) -> Interrupt:
    """Wakes a thread that waits for this connection."""
    return connection.info[INTERRUPT]


def _check_out(_: Any, record: Any, __: Any) -> None:
    if job := current_job():
        job.set_interrupt(record.info[INTERRUPT])


def _check_in(_: Any, __: Any) -> None:
    if job := current_job():
        job.clear_interrupt()


def _drop_values(context: ExceptionContext) -> None:
    if context.sqlalchemy_exception is not None:
        drop_values(context.sqlalchemy_exception)


def _from_json(value: Any) -> Any:
    """A value of a JSON column; where it is a bare number, SQLite hands over its own."""
    return value if isinstance(value, int | float) else orjson.loads(value)


def to_json(value: Any) -> str:
    """A value for a JSON column."""
    return orjson.dumps(value).decode()


# PostgreSQL -----------------------------------------------------------------------------------


def _postgresql(url: URL, patience: float, prepared: bool, *, writes: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {"connect_timeout": max(2, math.ceil(patience)), **KEEPALIVE}
    if not prepared:
        arguments["prepare_threshold"] = None
    options: dict[str, Any] = {
        "pool_size": POOL,
        "max_overflow": POOL,
        "pool_timeout": patience,
        "connect_args": {name: one for name, one in arguments.items() if name not in url.query},
    }
    return options if writes else options | {"isolation_level": "AUTOCOMMIT"}


def session_settings(seconds: float) -> str:
    """A statement that bounds what a session may take, where a call may take so long."""
    statement = math.ceil(max(STATEMENT_SECONDS, seconds))
    return SESSION.format(statement=statement, idle=statement + STATEMENT_SECONDS)


class _Sockets:
    """The sockets of an engine's connections: shut down, they wake the thread that waits."""

    def __init__(self, engine: Engine, *, writes: bool, seconds: float) -> None:
        self._dialect = engine.dialect
        self._writes = writes
        self._session = session_settings(seconds)
        event.listen(engine, "connect", self._open)
        event.listen(engine, "checkout", self._ping)
        event.listen(engine, "checkin", self._note_use)
        event.listen(engine, "close", self._close)

    def _open(self, connection: Any, record: Any) -> None:
        line = _second_handle(connection.pgconn.socket)
        record.info[LINE] = line
        record.info[USED] = time.monotonic()

        def interrupt() -> None:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

        record.info[INTERRUPT] = interrupt
        try:
            _check_out(connection, record, None)
            self._set_up(connection)
        except BaseException:
            connection.close()
            self._close(connection, record)
            raise

    def _set_up(self, connection: Any) -> None:
        before, connection.autocommit = connection.autocommit, True
        connection.execute(self._session)
        # Not on every version and system; there a statement goes on when its caller has given up.
        with contextlib.suppress(self._dialect.loaded_dbapi.DatabaseError):
            connection.execute(NOTICE_LOST_CLIENTS)
        if not self._writes:
            connection.execute(READ_ONLY)
        connection.autocommit = before

    def _ping(self, connection: Any, record: Any, _: Any) -> None:
        """Make sure of a connection that was idle; the pool's own way could not be interrupted."""
        if time.monotonic() - record.info[USED] < SURE_SECONDS:
            return
        _check_out(connection, record, None)
        try:
            self._dialect.do_ping(connection)
        except self._dialect.loaded_dbapi.Error as problem:
            job = current_job()
            if job and job.stopped:
                raise JobStopped from problem
            raise InvalidatePoolError from problem

    def _note_use(self, _: Any, record: Any) -> None:
        record.info[USED] = time.monotonic()

    def _close(self, _: Any, record: Any) -> None:
        line = record.info.pop(LINE, None)
        if line is not None:
            line.close()


def _second_handle(number: int) -> socket.socket:
    """A handle of our own on a driver's socket: its number may be another's at any time."""
    # Not `socket.dup`: that would make the driver's socket blocking too, and large results hang.
    return socket.socket(fileno=os.dup(number))


# SQLite ---------------------------------------------------------------------------------------


def _open_sqlite(connection: Any, record: Any) -> None:
    record.info[INTERRUPT] = connection.interrupt
    # The driver's own transaction handling begins late and cannot take the write lock at once;
    # we say BEGIN ourselves.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {READER_BUSY_MILLISECONDS}")
    _to_wal(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _to_wal(connection: Any) -> None:
    """Two that open a new file at once would refuse each other: SQLite waits for no lock here."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        threading.Event().wait(0.01)


def _write_sqlite(connection: Any, _: Any) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    connection.execute(f"PRAGMA journal_size_limit = {MAX_WAL_BYTES}")


def _read_sqlite(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")


def _begin_sqlite(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    until = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < until:
        try:
            driver.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                break
        job = current_job()
        if job and job.stopped:
            raise JobStopped
    connection.exec_driver_sql("BEGIN IMMEDIATE")
