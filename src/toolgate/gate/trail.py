"""Reading the audit back."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, func, literal, or_, select

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import clients
from toolgate.db.tables import audit, keys

Row = dict[str, Any]
OUTCOMES: dict[str, ColumnElement[bool]] = {
    "ok": and_(audit.c.decision != "deny", audit.c.error_type.is_(None)),
    "failed": and_(audit.c.decision != "deny", audit.c.error_type.is_not(None)),
    "refused": audit.c.decision == "deny",
}
"""How calls end, by their names."""
MAX_IDS = 500
"""Ids in one question: databases have a limit."""


async def rows(
    database: Database,
    *,
    tool: str | None = None,
    principal: str | None = None,
    since: str | None = None,
    outcome: str | None = None,
    after: int = 0,
    limit: int = 50,
) -> list[Row]:
    """Audit rows, oldest first: the newest `limit`, or the first `limit` after a row's number.

    Each with the names, as they are known today, of the key and of the OAuth client that acted.
    A principal is named by its id (`key:ID` or `ID`), its user, its agent type or its kind, and
    also by the OAuth client, the key or the grant that acts for it, or that the row is about. A key
    or a client may be given by its name, too. `since` is a time as rows have it, `outcome` one of
    `OUTCOMES`.
    """
    statement = select(audit)
    if tool is not None:
        statement = statement.where(audit.c.tool_name == tool)
    if principal is not None:
        statement = statement.where(_is(principal))
    if since is not None:
        statement = statement.where(audit.c.created_at >= since)
    if outcome is not None:
        statement = statement.where(OUTCOMES[outcome])
    if after:
        following = statement.where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
        return await database.read(lambda connection: _rows(connection, following))
    newest = statement.order_by(audit.c.seq.desc()).limit(limit)
    return (await database.read(lambda connection: _rows(connection, newest)))[::-1]


async def count(database: Database) -> int:
    """How many audit rows there are."""
    every = select(func.count()).select_from(audit)
    return await database.read(lambda connection: connection.scalar(every)) or 0


def _is(principal: str) -> Any:
    key_ids = select(literal("key:") + keys.c.id).where(keys.c.name == principal)
    client_ids = select(clients.c.id).where(clients.c.name == principal)
    return or_(
        audit.c.subject_id.in_([principal, f"key:{principal}"]),
        audit.c.subject_id.in_(key_ids),
        audit.c.user_id == principal,
        audit.c.agent_type == principal,
        audit.c.subject_type == principal,
        audit.c.client_id.in_([principal, f"key:{principal}"]),
        audit.c.client_id.in_(key_ids.union_all(client_ids)),
        audit.c.grant_id == principal,
    )


def _rows(connection: Connection, statement: Select[Any]) -> list[Row]:
    rows = [dict(row) for row in connection.execute(statement).mappings()]
    key_names = _names(connection, keys, {_key_id(row) for row in rows})
    client_names = _names(connection, clients, {row["client_id"] for row in rows})
    for row in rows:
        row["key_name"] = key_names.get(_key_id(row))
        row["client_name"] = client_names.get(row["client_id"])
    return rows


def _key_id(row: Row) -> str | None:
    for subject in (row["subject_id"], row["client_id"] or ""):
        kind, _, key_id = subject.partition(":")
        if kind == "key":
            return key_id
    return None


def _names(connection: Connection, table: Table, ids: set[str | None]) -> dict[str | None, str]:
    sorted_ids = sorted(one for one in ids if one is not None)
    names: dict[str | None, str] = {}
    for first in range(0, len(sorted_ids), MAX_IDS):
        some = table.c.id.in_(sorted_ids[first : first + MAX_IDS])
        for row in connection.execute(select(table.c.id, table.c.name).where(some)):
            names[row.id] = row.name
    return names
