"""Whether the database can do what calls need of it: be read, be written, and be the same one."""

import os
import secrets
from pathlib import Path

from sqlalchemy import Connection, delete, insert
from sqlalchemy.exc import DBAPIError

from toolgate.db.engine import Database
from toolgate.db.tables import write_checks

NO_FILE = (0, 0)
CORRUPT = ("malformed", "not a database")


def is_corrupt(error: DBAPIError) -> bool:
    """Whether SQLite says that the file itself is damaged."""
    return any(words in str(error.orig) for words in CORRUPT)


class DatabaseReplaced(Exception):
    """The file of an embedded database is gone, or another: what is written now would be lost."""


class DatabaseHealth:
    """Tries a database that has been opened."""

    def __init__(self, database: Database) -> None:
        self._database = database
        name = database.url.database
        self._file = Path(name) if database.dialect == "sqlite" and name else None
        self._opened = self._identity()

    async def check(self) -> None:
        """Raise unless the database answers, and its file is the one that was opened."""
        self.check_file()
        await self._database.check()

    def check_file(self) -> None:
        """Raise unless the file is the one that was opened."""
        if self._identity() != self._opened:
            raise DatabaseReplaced(f"{self._file} was deleted or replaced; restart the server")

    async def check_writing(self) -> None:
        """Raise unless a write can be committed; nothing of it stays.

        The row is deleted in its own transaction, which still has to be written to the disk.
        """
        self.check_file()  # a new connection would make an empty file where there is none
        row = {"id": secrets.token_hex(16)}

        def write(connection: Connection) -> None:
            connection.execute(insert(write_checks), [row])
            connection.execute(delete(write_checks).where(write_checks.c.id == row["id"]))

        await self._database.write(write)

    def _identity(self) -> tuple[int, int]:
        if self._file is None:
            return NO_FILE
        try:
            status = os.stat(self._file)
        except OSError:
            return NO_FILE
        return status.st_dev, status.st_ino
