"""Rows past their end go, a few whenever new ones come."""

from sqlalchemy import Connection, Table, delete, select

from toolgate.gate.audit_records import timestamp

MAX_AT_ONCE = 20


def delete_expired(connection: Connection, table: Table, *, kept_seconds: float = 0) -> None:
    """Delete some expired rows; ones that another process deletes just now are left to it."""
    some = (
        select(table.c.id)
        .where(table.c.expires_at < timestamp(seconds=-kept_seconds))
        .order_by(table.c.expires_at)
        .limit(MAX_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    if ids := list(connection.scalars(some)):
        connection.execute(delete(table).where(table.c.id.in_(ids)))
