"""Users who hold a key, or let a client act for them, by the gate's own tables."""

from sqlalchemy import ColumnElement, cast, select, union

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants
from toolgate.db.tables import BytewiseText, keys


class SqlCredentialHolders:
    """Asks the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(self, uid: str, limit: int) -> list[str]:
        """The next of them by uid; an agent's key is not a user's."""
        # In the order of documents, which is not that of a language.
        held: ColumnElement[str] = cast(keys.c.user_id, BytewiseText)
        granted: ColumnElement[str] = cast(grants.c.user_id, BytewiseText)
        of_users = select(held.label("uid")).where(
            keys.c.agent_type.is_(None), keys.c.revoked_at.is_(None), held > uid
        )
        every = union(of_users, select(granted.label("uid")).where(granted > uid)).subquery()
        some = select(every.c.uid).order_by(every.c.uid).limit(limit)
        return await self._database.read(lambda connection: list(connection.scalars(some)))
