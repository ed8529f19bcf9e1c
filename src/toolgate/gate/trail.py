"""Reading the audit back."""

from typing import Any

from sqlalchemy import Connection, Select, or_, select

from toolgate.db.engine import Database
from toolgate.db.tables import audit

Row = dict[str, Any]


async def rows(
    database: Database,
    *,
    tool: str | None = None,
    principal: str | None = None,
    after: int = 0,
    limit: int = 50,
) -> list[Row]:
    """Audit rows, oldest first: the newest `limit`, or the first `limit` after a row's number.

    A principal is named by its id (`key:ID` or `ID`), its user, its agent type or its kind.
    """
    wanted = select(audit)
    if tool is not None:
        wanted = wanted.where(audit.c.tool_name == tool)
    if principal is not None:
        wanted = wanted.where(_is(principal))
    if after:
        following = wanted.where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
        return await database.read(lambda connection: _rows(connection, following))
    newest = wanted.order_by(audit.c.seq.desc()).limit(limit)
    return (await database.read(lambda connection: _rows(connection, newest)))[::-1]


def _is(principal: str) -> Any:
    return or_(
        audit.c.subject_id.in_([principal, f"key:{principal}"]),
        audit.c.user_id == principal,
        audit.c.agent_type == principal,
        audit.c.subject_type == principal,
    )


def _rows(connection: Connection, wanted: Select[Any]) -> list[Row]:
    return [dict(row) for row in connection.execute(wanted).mappings()]
