"""Keeping SQLite's write-ahead log small.

SQLite copies the log into the database by itself, but begins it anew only when no reader needs it:
with readers all the time, never. So now and then somebody has to wait for them, briefly.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from toolgate.db.connections import BUSY_MILLISECONDS, MAX_WAL_BYTES

LOOK_SECONDS = 5.0
WAIT_MILLISECONDS = 100


def is_large(database: str | None) -> bool:
    """Whether the log of this database file should be shortened."""
    try:
        return bool(database) and Path(f"{database}-wal").stat().st_size > MAX_WAL_BYTES
    except OSError:
        return False


def shorten(writer: Engine) -> None:
    """Copy the log into the database and empty it, as far as readers let us."""
    with writer.connect() as connection:
        driver: Any = connection.connection.dbapi_connection
        driver.execute(f"PRAGMA busy_timeout = {WAIT_MILLISECONDS}")
        try:
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            driver.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
