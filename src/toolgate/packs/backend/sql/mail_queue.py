"""Mails that are not done with, in the gate's database."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.mail.queue import (
    QueuedMail,
    Status,
    message_record,
    read_message,
    read_recipient,
    recipient_record,
)
from toolgate.packs.backend.sql.inserts import insert_new
from toolgate.packs.backend.sql.mail_tables import mail_queue as table


class SqlMailQueue:
    """Reads and stores mails that are not done with."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, tx: Transaction, mail: QueuedMail, *, digest: str | None, lease: datetime | None
    ) -> str | None:
        """Store a mail; the id of the open one with the same digest, where there is one."""
        now = timestamp()
        row: dict[str, Any] = {
            "id": mail.id,
            "status": mail.status.value,
            "due_at": stamp(mail.due_at),
            "lease_until": stamp(lease) if lease else None,
            "digest": digest,
            "attempts": mail.attempts,
            "message": message_record(mail.message),
            "recipients": [recipient_record(one) for one in mail.recipients],
            "options": mail.options,
            "created_at": now,
            "updated_at": now,
        }

        def work(connection: Connection) -> str | None:
            if insert_new(connection, table, row):
                return None
            if digest is None:  # which would find any mail without one
                return mail.id
            return connection.scalar(select(table.c.id).where(table.c.digest == digest)) or mail.id

        return await tx.run(work)

    async def get(self, mail_id: str) -> QueuedMail | None:
        """One mail."""
        wanted = select(table).where(table.c.id == mail_id)
        row = await self._database.read(lambda connection: connection.execute(wanted).first())
        return _mail(row) if row is not None else None

    async def page(
        self, status: Status | None, after: str | None, limit: int
    ) -> Sequence[QueuedMail]:
        """Mails by their ids."""
        wanted = select(table).order_by(table.c.id).limit(limit)
        if status is not None:
            wanted = wanted.where(table.c.status == status.value)
        if after is not None:
            wanted = wanted.where(table.c.id > after)
        rows = await self._database.read(lambda connection: connection.execute(wanted).all())
        return [_mail(row) for row in rows]

    async def due(self, now: datetime, limit: int) -> Sequence[str]:
        """The ids of held mails whose time has come."""
        wanted = select(table.c.id).where(
            table.c.status == Status.QUEUED.value, table.c.due_at <= stamp(now)
        )
        wanted = wanted.order_by(table.c.due_at, table.c.id).limit(limit)
        return await self._database.read(lambda connection: connection.scalars(wanted).all())

    async def claim(self, mail_id: str, now: datetime, lease: datetime) -> QueuedMail | None:
        """Take a held mail to send it; who changes its row first has it."""
        taken = (
            update(table)
            .where(
                table.c.id == mail_id,
                table.c.status == Status.QUEUED.value,
                table.c.due_at <= stamp(now),
            )
            .values(
                status=Status.SENDING.value,
                lease_until=stamp(lease),
                attempts=table.c.attempts + 1,
                updated_at=timestamp(),
            )
            .returning(table)
        )
        row = await self._database.write(lambda connection: connection.execute(taken).first())
        return _mail(row) if row is not None else None

    async def release(self, mail_id: str) -> bool:
        """Let a mail of the outbox be delivered now."""
        now = timestamp()
        waiting = update(table).where(table.c.id == mail_id, table.c.status == Status.WAITING.value)
        waiting = waiting.values(status=Status.QUEUED.value, due_at=now, updated_at=now)
        return bool(
            await self._database.write(lambda connection: connection.execute(waiting).rowcount)
        )

    async def note(self, mail: QueuedMail, lease: datetime) -> None:
        """Store what became of recipients so far."""
        values = {
            "recipients": [recipient_record(one) for one in mail.recipients],
            "lease_until": stamp(lease),
            "updated_at": timestamp(),
        }
        noted = update(table).where(table.c.id == mail.id).values(values)
        await self._database.write(lambda connection: connection.execute(noted))

    async def settle(self, tx: Transaction, mail: QueuedMail) -> None:
        """Store what became of a mail that is kept."""
        values: dict[str, Any] = {
            "status": mail.status.value,
            "due_at": stamp(mail.due_at),
            "lease_until": None,
            "recipients": [recipient_record(one) for one in mail.recipients],
            "updated_at": timestamp(),
        }
        if mail.status is not Status.UNKNOWN:
            values["digest"] = None
        settled = update(table).where(table.c.id == mail.id).values(values)
        await tx.run(lambda connection: connection.execute(settled))

    async def remove(self, tx: Transaction, mail_id: str) -> bool:
        """A mail is done with."""
        gone = delete(table).where(table.c.id == mail_id)
        return bool(await tx.run(lambda connection: connection.execute(gone).rowcount))

    async def lost(self, now: datetime, limit: int) -> Sequence[QueuedMail]:
        """Mails whose server did not come back to say what became of them."""
        wanted = select(table).where(
            table.c.status == Status.SENDING.value, table.c.lease_until < stamp(now)
        )
        wanted = wanted.order_by(table.c.id).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(wanted).all())
        return [_mail(row) for row in rows]


def stamp(moment: datetime) -> str:
    """A moment as tables have it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _mail(row: Row[*tuple[Any, ...]]) -> QueuedMail:
    return QueuedMail(
        message=read_message(row.message),
        recipients=tuple(read_recipient(one) for one in row.recipients),
        options=row.options,
        status=Status(row.status),
        due_at=datetime.fromisoformat(row.due_at),
        attempts=row.attempts,
    )
