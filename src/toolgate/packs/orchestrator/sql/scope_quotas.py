"""Whether a place has room for a value.

Keys that only admins change are counted apart, so that nobody else takes their room. What admins
store under other keys always fits; of the rest, one user has a share.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, case, func, or_, select

from toolgate.gate.errors import QuotaExceeded
from toolgate.packs.orchestrator.records import Change, Place, ScopeQuota
from toolgate.packs.orchestrator.sql.advisory_locks import lock


def reserved_keys(key: ColumnElement[str], names: tuple[str, ...]) -> ColumnElement[bool]:
    """Keys that only admins change."""
    begin = [key.startswith(f"{one}.", autoescape=True) for one in names]
    return or_(key.in_(names), *begin)


def check_room(
    connection: Connection,
    table: Table,
    quota: ScopeQuota,
    *,
    place: Place,
    among: list[ColumnElement[bool]],
    values: dict[str, Any],
    change: Change,
    size: int,
    is_new: bool,
    shared: bool,
) -> None:
    """Raise where the other records among these leave no room; nobody else adds one meanwhile."""
    lock(connection, table.name, place.scope_type, place.scope_id)
    own = and_(table.c.owner == change.owner)
    total = func.coalesce(func.sum(table.c.size), 0)
    of_owner = func.coalesce(func.sum(case((own, table.c.size), else_=0)), 0)
    records_of_owner = func.coalesce(func.sum(case((own, 1), else_=0)), 0)
    held = select(func.count(), total, records_of_owner, of_owner).where(*among)
    records, used, own_records, own_used = connection.execute(held, values).one()
    if is_new and records >= quota.records:
        raise QuotaExceeded(
            f"This scope has {records} records, and may have {quota.records}. Delete some."
        )
    if used + size > quota.value_bytes:
        raise QuotaExceeded(
            f"The other values of this scope have {used} bytes and this one {size}; together "
            f"they may have {quota.value_bytes}. Shorten or delete some first."
        )
    if shared:
        _check_share(quota.share, own_records, own_used, size, is_new=is_new)


def _check_share(share: ScopeQuota, records: int, used: int, size: int, *, is_new: bool) -> None:
    whose = "Others share this scope, so one user has at most half of it"
    if is_new and records >= share.records:
        raise QuotaExceeded(
            f"{whose}: {share.records} records, and {records} are yours. Delete some of yours."
        )
    if used + size > share.value_bytes:
        raise QuotaExceeded(
            f"{whose}: {share.value_bytes} bytes of values. Your others have {used} and this one "
            f"{size}. Shorten or delete some of yours first."
        )
