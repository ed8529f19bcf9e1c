"""What a running server keeps about people, read and changed behind its back."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

from tests.patience import PATIENT
from tests.servers import Server


@contextmanager
def _database(server: Server) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(server.data / "toolgate.db", timeout=PATIENT)) as connection:
        yield connection


def record_of(server: Server, uid: str) -> dict[str, Any] | None:
    """The document `users/UID`."""
    one = "SELECT fields FROM documents WHERE collection = 'users' AND id = ?"
    with _database(server) as connection:
        row = connection.execute(one, [uid]).fetchone()
    return json.loads(row[0]) if row else None


def set_admin(server: Server, uid: str, *, value: bool) -> None:
    """Change a record as an application would, without the server's help."""
    change = (
        "UPDATE documents SET fields = json_set(fields, '$.roles.admin', json(?)) "
        "WHERE collection = 'users' AND id = ?"
    )
    with _database(server) as connection, connection:
        done = connection.execute(change, [json.dumps(value), uid])
        assert done.rowcount == 1


def grants_of(server: Server, uid: str | None = None) -> int:
    """How many grants were made, for one person or for all."""
    some = "SELECT count(*) FROM oauth_grants WHERE ? IS NULL OR user_id = ?"
    with _database(server) as connection:
        return connection.execute(some, [uid, uid]).fetchone()[0]
