"""Push notifications that are kept in the gate's database instead of being sent."""

from collections.abc import Sequence

import orjson
from sqlalchemy import Connection, delete, insert, select

from toolgate.db.engine import Database
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.push.outbox import KeptNotification
from toolgate.packs.backend.push.port import Delivery, Notification, PushResult
from toolgate.packs.backend.sql.push_tables import push_outbox

KEPT = 10_000
"""Rows: the oldest make room for new ones."""


class SqlPushOutbox:
    """The embedded default: it keeps what would be sent, to be looked at."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, notification: Notification, tokens: Sequence[str]) -> list[PushResult]:
        """Keep one message to each token."""
        tokens = list(dict.fromkeys(tokens))
        row = {
            "notification": orjson.dumps(notification.fields()).decode(),
            "recipients": len(tokens),
            "tokens": orjson.dumps(tokens).decode(),
            "created_at": timestamp(),
        }

        def work(connection: Connection) -> None:
            new = insert(push_outbox).values(row).returning(push_outbox.c.seq)
            newest = connection.scalar(new) or 0
            connection.execute(delete(push_outbox).where(push_outbox.c.seq <= newest - KEPT))

        if tokens:
            async with self._database.transaction() as tx:
                await tx.run(work)
        return [PushResult(one, Delivery.SENT) for one in tokens]

    async def check(self) -> str:
        """Where notifications go."""
        return "Kept in the outbox, sent to nobody. push.url = fcm://PROJECT sends them."

    async def page(self, before: int | None, limit: int) -> list[KeptNotification]:
        """The newest ones, or those before a number; newest first."""
        wanted = select(push_outbox).order_by(push_outbox.c.seq.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(push_outbox.c.seq < before)
        rows = await self._database.read(lambda one: one.execute(wanted).mappings().all())
        return [
            KeptNotification(
                row["seq"],
                orjson.loads(row["notification"]),
                row["recipients"],
                orjson.loads(row["tokens"]),
                row["created_at"],
            )
            for row in rows
        ]
