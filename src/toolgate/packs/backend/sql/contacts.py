"""The embedded list of contacts, in the gate's database."""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, select

from toolgate.db.engine import Database
from toolgate.db.records import note_record, update_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.marketing.contacts import Contact, KeptContact, Stored
from toolgate.packs.backend.sql.contact_tables import contacts
from toolgate.packs.backend.sql.inserts import insert_new

Row = dict[str, Any]
EMPTY: Row = {"first_name": None, "last_name": None, "source": None, "tags": "[]"}


class SqlContacts:
    """Reads and stores contacts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, email: str) -> KeptContact | None:
        """One contact, also one that was removed."""
        row = await self._database.read(lambda one: _row(one, email), quick=True)
        return None if row is None else _kept(row)

    async def page(self, after: str | None, limit: int) -> list[KeptContact]:
        """Contacts that are not removed, by address."""
        return await self._page(contacts.c.removed.is_(False), after, limit)

    async def waiting(self, after: str | None, limit: int) -> list[KeptContact]:
        """Rows that the provider has yet to be told of, by address."""
        return await self._page(contacts.c.pending, after, limit)

    async def _page(
        self, which: ColumnElement[bool], after: str | None, limit: int
    ) -> list[KeptContact]:
        wanted = select(contacts).where(which).order_by(contacts.c.email).limit(limit)
        if after is not None:
            wanted = wanted.where(contacts.c.email > after)
        rows = await self._database.read(lambda one: one.execute(wanted).mappings().all())
        return [_kept(dict(row)) for row in rows]

    async def put(self, tx: Transaction, contact: Contact, *, pending: bool) -> Stored:
        """Add or change a contact; what is not given stays."""
        now = timestamp()
        given: Row = {
            "first_name": contact.first_name,
            "last_name": contact.last_name,
            "source": contact.source,
            "tags": orjson.dumps(list(contact.tags)).decode() if contact.tags else None,
        }
        given = {name: value for name, value in given.items() if value is not None}
        fixed: Row = {"removed": False, "pending": pending, "updated_at": now}
        new: Row = {**EMPTY, "email": contact.email, **given, **fixed, "created_at": now}

        def work(connection: Connection) -> Stored:
            if insert_new(connection, contacts, new):
                note_record(tx, connection, contacts, None, new)
                return Stored(True, now)
            old = _row(connection, contact.email, lock=True)
            assert old is not None
            update_record(tx, connection, contacts, old, {**given, **fixed})
            return Stored(old["removed"], now)

        return await tx.run(work)

    async def remove(self, tx: Transaction, email: str, *, pending: bool) -> Stored:
        """Remove a contact; with `pending`, noted also where the list has none."""
        now = timestamp()
        gone: Row = {"removed": True, "pending": pending, "updated_at": now}
        new: Row = {**EMPTY, "email": email, **gone, "created_at": now}

        def work(connection: Connection) -> Stored:
            if pending and insert_new(connection, contacts, new):
                note_record(tx, connection, contacts, None, new)
                return Stored(False, now)
            old = _row(connection, email, lock=True)
            was_there = old is not None and not old["removed"]
            if old is not None and (was_there or pending):
                update_record(tx, connection, contacts, old, gone)
            return Stored(was_there, now)

        return await tx.run(work)

    async def settle(self, tx: Transaction, email: str, updated_at: str) -> None:
        """The provider has been told of the row as it was then."""
        same = [contacts.c.updated_at == updated_at]

        def work(connection: Connection) -> None:
            old = _row(connection, email, lock=True)
            if old is not None:
                update_record(tx, connection, contacts, old, {"pending": False}, where=same)

        await tx.run(work)


def _row(connection: Connection, email: str, *, lock: bool = False) -> Row | None:
    wanted = select(contacts).where(contacts.c.email == email)
    row = connection.execute(wanted.with_for_update() if lock else wanted).mappings().first()
    return None if row is None else dict(row)


def _kept(row: Mapping[str, Any]) -> KeptContact:
    return KeptContact(
        contact=Contact(
            email=row["email"],
            first_name=row["first_name"],
            last_name=row["last_name"],
            source=row["source"],
            tags=orjson.loads(row["tags"]),
        ),
        removed=row["removed"],
        pending=row["pending"],
        updated_at=row["updated_at"],
    )
