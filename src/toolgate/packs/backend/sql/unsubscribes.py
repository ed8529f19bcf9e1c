"""Who is not to be mailed, in the gate's database."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, select

from toolgate.db.engine import Database
from toolgate.db.records import delete_records, note_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.sql.inserts import insert_new
from toolgate.packs.backend.sql.marketing_tables import unsubscribes

MAX_VALUES = 200
"""Addresses in one statement: databases have a limit."""


class SqlUnsubscribes:
    """Reads and stores unsubscribes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def among(self, emails: Sequence[str], topics: Sequence[str]) -> set[str]:
        """Those of the addresses that unsubscribed from one of the topics."""
        column = unsubscribes.c.email

        def look(connection: Connection) -> set[str]:
            found = set[str]()
            for first in range(0, len(emails), MAX_VALUES):
                part = column.in_(emails[first : first + MAX_VALUES])
                wanted = select(column).where(part, unsubscribes.c.topic.in_(topics))
                found |= set(connection.scalars(wanted))
            return found

        return await self._database.read(look, quick=len(emails) == 1)

    async def add(self, tx: Transaction, email: str, topic: str, source: str) -> bool:
        """Note that an address wants no mail of a topic; False where that was known."""
        row = {"email": email, "topic": topic, "source": source, "created_at": timestamp()}

        def work(connection: Connection) -> bool:
            if is_new := insert_new(connection, unsubscribes, row):
                note_record(tx, connection, unsubscribes, None, row)
            return is_new

        return await tx.run(work)

    async def remove(self, tx: Transaction, email: str, topic: str) -> bool:
        """An address wants mail of a topic again; False where it always did."""
        return await tx.run(
            lambda one: bool(delete_records(tx, one, unsubscribes, _is(email, topic)))
        )


def _is(email: str, topic: str) -> list[ColumnElement[bool]]:
    return [unsubscribes.c.email == email, unsubscribes.c.topic == topic]
