"""What an administrator sees of grants, and ends."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, update

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import clients, grants, tokens
from toolgate.db.tables import keys
from toolgate.gate.audit_records import timestamp
from toolgate.gate.operators import note_operator
from toolgate.identity.keys import SETTING_KEY_ID

SHOWN = (
    "id",
    "client_id",
    "redirect_uri",
    "user_id",
    "key_id",
    "scope",
    "created_at",
    "expires_at",
)
IN_FORCE = (grants.c.ended_at.is_(None), grants.c.code_used_at.is_not(None))


async def grants_in_force(database: Database) -> list[dict[str, Any]]:
    """Every grant a client can still use, the newest first.

    `used_at` is when the client last fetched a token: while it works, every few minutes.
    """
    used = select(func.max(tokens.c.created_at)).where(tokens.c.grant_id == grants.c.id)
    every = (
        select(
            *(grants.c[name] for name in SHOWN),
            clients.c.name.label("client_name"),
            keys.c.name.label("key_name"),
            used.scalar_subquery().label("used_at"),
        )
        .outerjoin(clients, clients.c.id == grants.c.client_id)
        .outerjoin(keys, keys.c.id == grants.c.key_id)
        .where(*IN_FORCE, grants.c.expires_at > timestamp(), _key_in_force())
        .order_by(grants.c.created_at.desc(), grants.c.id)
    )
    return await database.read(
        lambda connection: [dict(row) for row in connection.execute(every).mappings()]
    )


async def end_grants(database: Database, whose: str) -> int:
    """End a grant by its id, or all of a user or a key, on an operator's word; how many."""
    condition = or_(grants.c.id == whose, grants.c.user_id == whose, grants.c.key_id == whose)
    return await database.write(lambda connection: _end(connection, condition))


async def end_former_key(database: Database, mark: bytes | None) -> int:
    """End what was allowed with an admin key that is not the configured one any more.

    Its tokens are refused anyway; ended, they stay so when the setting is changed back.
    """
    former = grants.c.key_mark.is_distinct_from(mark)
    condition = and_(grants.c.key_id == SETTING_KEY_ID, former)
    some = select(grants.c.id).where(condition, grants.c.ended_at.is_(None)).limit(1)
    # Looked at first: a start does not wait for the write lock without need.
    if await database.read(lambda connection: connection.execute(some).first()) is None:
        return 0
    return await database.write(lambda connection: _end(connection, condition))


def _end(connection: Connection, condition: ColumnElement[bool]) -> int:
    statement = update(grants).where(condition, grants.c.ended_at.is_(None))
    returned = statement.values(ended_at=timestamp()).returning(grants.c.id, grants.c.client_id)
    rows = connection.execute(returned).all()
    for row in rows:
        note_operator(connection, "grants.end", client_id=row.client_id, grant_id=row.id)
    return len(rows)


def _key_in_force() -> ColumnElement[bool]:
    """That the key a grant was signed in with has not ended; the configured one has no row."""
    in_time = or_(keys.c.expires_at.is_(None), keys.c.expires_at > timestamp())
    without_row = or_(grants.c.key_id.is_(None), grants.c.key_id == SETTING_KEY_ID)
    return or_(without_row, and_(keys.c.id.is_not(None), keys.c.revoked_at.is_(None), in_time))
