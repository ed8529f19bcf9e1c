"""Commits that are about to be made, in the gate's database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Index, Select, String, Table, delete, insert, select

from toolgate.db.engine import Database
from toolgate.db.tables import Time
from toolgate.db.transactions import Transaction
from toolgate.packs.backend.publishing.intents import Check, PostIntent
from toolgate.packs.backend.sql.tables import Id, Words, metadata

post_intents = Table(
    "backend_post_intents",
    metadata,
    Column("call", Id, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("slug", Words, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_backend_post_intents_digest", "digest"),
)
_COLUMNS = (
    post_intents.c.call,
    post_intents.c.digest,
    post_intents.c.slug,
    post_intents.c.created_at,
)


class SqlPostIntents:
    """Stores intents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, intent: PostIntent, check: Check | None = None) -> None:
        """Store an intent, unless a check in the same transaction raises."""
        row = {
            "call": intent.call,
            "digest": intent.digest,
            "slug": intent.slug,
            "created_at": intent.created_at,
        }
        async with self._database.transaction() as tx:
            if check is not None:
                await check(tx)
            await tx.run(lambda connection: connection.execute(insert(post_intents), row))

    async def drop(self, calls: Sequence[str]) -> None:
        """Nothing more is to be found out about these."""
        async with self._database.transaction() as tx:
            await self.finish(tx, calls)

    async def finish(self, tx: Transaction, calls: Sequence[str]) -> None:
        """These are done, and known to be, once the transaction commits."""
        done = delete(post_intents).where(post_intents.c.call.in_(calls))
        await tx.run(lambda connection: connection.execute(done))

    async def like(self, digest: str) -> list[PostIntent]:
        """What is left of the same call, made before."""
        return await self._found(select(*_COLUMNS).where(post_intents.c.digest == digest))

    async def before(self, time: str, most: int) -> list[PostIntent]:
        """What was begun before a time, the oldest first."""
        older = select(*_COLUMNS).where(post_intents.c.created_at < time)
        return await self._found(older.order_by(post_intents.c.created_at).limit(most))

    async def _found(self, query: Select[Any, Any, Any, Any]) -> list[PostIntent]:
        def look(connection: Connection) -> list[PostIntent]:
            return [PostIntent(*row) for row in connection.execute(query)]

        return await self._database.read(look)
