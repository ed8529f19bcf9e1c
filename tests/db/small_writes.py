"""Writes of one row, as PostgreSQL takes several of them in one statement."""

from sqlalchemy import Connection, select

from toolgate.db.engine import Database
from toolgate.db.postgres_lines import Lines
from toolgate.db.row_writes import RowWrite, insertion
from toolgate.db.tables import write_checks
from toolgate.db.transactions import Transaction

MANY = 40
CHECK = insertion(write_checks, ["id"])


class Conflict(Exception):
    """What a tool answers where a record is in another state."""


def refuse(_: Connection) -> None:
    """Work that cannot be done."""
    raise Conflict


def lines(database: Database) -> Lines:
    """The connections kept for small writes."""
    assert database.row_store is not None
    return database.row_store.lines


async def add(database: Database, name: str) -> Transaction:
    """Store a row."""
    async with database.transaction() as tx:
        tx.defer(
            lambda connection: connection.execute(write_checks.insert().values(id=name)),
            lambda: [RowWrite(CHECK, [(name,)])],
        )
    return tx


async def stored(database: Database) -> set[str]:
    """The rows that are stored."""
    names = select(write_checks.c.id)
    return set(await database.read(lambda connection: connection.scalars(names).all()))
