"""Intents, and what processors have told, in the gate's database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.payments.intents import OPEN, Forgotten, Intent, Json
from toolgate.packs.backend.sql.inserts import insert_new
from toolgate.packs.backend.sql.payment_tables import events, intents, readings


class SqlIntents:
    """Stores intents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, intent: Intent) -> Intent:
        """Store it, or return the one that is open for the same."""
        now = timestamp()
        row = {
            "id": intent.id,
            "open_for": intent.open_for,
            "kind": intent.kind,
            "uid": intent.uid,
            "processor": intent.processor,
            "resource_id": intent.resource_id,
            "request": intent.request,
            "state": OPEN,
            "created_at": now,
            "updated_at": now,
        }

        def work(connection: Connection) -> Intent:
            same = select(intents).where(intents.c.open_for == intent.open_for)
            while True:  # the one in the way may end just now
                if insert_new(connection, intents, row):
                    return intent
                if found := connection.execute(same).mappings().first():
                    return _intent(found)

        async with self._database.transaction() as tx:
            return await tx.run(work)

    async def end(self, tx: Transaction, intent: Intent, state: str, answer: Json) -> None:
        """Store how it ended, once."""
        values = {"state": state, "answer": answer, "open_for": None, "updated_at": timestamp()}
        ended = update(intents).where(intents.c.id == intent.id, intents.c.state == OPEN)
        await tx.run(lambda connection: connection.execute(ended.values(values)))

    async def give_up(self, intent: Intent, state: str, answer: Json) -> None:
        """Store how it ended."""
        async with self._database.transaction() as tx:
            await self.end(tx, intent, state, answer)

    async def open_since(self, before: str, after: str, limit: int) -> Sequence[Intent]:
        """Open ones that began before a time, behind an id."""
        wanted = select(intents).where(intents.c.open_for.is_not(None))
        wanted = wanted.where(intents.c.created_at < before, intents.c.id > after)
        wanted = wanted.order_by(intents.c.id).limit(limit)
        rows = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().all()
        )
        return [_intent(row) for row in rows]

    async def is_newest(
        self, tx: Transaction, processor: str, resource_id: str, read_at: int
    ) -> bool:
        """Whether nothing was asked for later; others about the same wait for this commit."""
        row = {"processor": processor, "resource_id": resource_id, "read_at": read_at}

        def work(connection: Connection) -> bool:
            new = _dialect(connection).insert(readings).values(row)
            new = new.on_conflict_do_update(
                index_elements=[readings.c.processor, readings.c.resource_id],
                set_={"read_at": read_at},
                where=readings.c.read_at <= read_at,
            )
            return _rows(connection, new) == 1

        return await tx.run(work)

    async def is_new_event(self, tx: Transaction, id: str, kind: str, created: int) -> bool:
        """Whether an event is stored here for the first time."""
        row = {"id": id, "kind": kind, "created": created, "received_at": timestamp()}
        return await tx.run(lambda connection: insert_new(connection, events, row))

    async def forget(self, before: str, limit: int) -> Forgotten:
        """Forget some of what came, or ended, before a time."""
        old_events = select(events.c.id).where(events.c.received_at < before).limit(limit)
        ended = select(intents.c.id).where(intents.c.open_for.is_(None))
        ended = ended.where(intents.c.updated_at < before).limit(limit)

        def work(connection: Connection) -> Forgotten:
            return Forgotten(
                _rows(connection, delete(events).where(events.c.id.in_(old_events))),
                _rows(connection, delete(intents).where(intents.c.id.in_(ended))),
            )

        async with self._database.transaction() as tx:
            return await tx.run(work)


def _intent(row: Any) -> Intent:
    names = ("id", "kind", "uid", "processor", "resource_id", "request")
    return Intent(**{name: row[name] for name in names})


def _dialect(connection: Connection) -> Any:
    return postgresql if connection.dialect.name == "postgresql" else sqlite


def _rows(connection: Connection, statement: Any) -> int:
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount
