"""Locks on paths of a tree in PostgreSQL, until the end of the transaction.

No two transactions may at once write a path and one below it: neither sees the other's rows, so
both a scalar and its children would stay. There is no row to lock where nothing is stored yet, so
these are advisory locks: an exclusive one on each path that is written, shared ones on all paths
above. So writers wait for each other only where one writes at or below the other's path.
SQLite has one writer at a time and needs none.
"""

import hashlib
from collections.abc import Collection

from sqlalchemy import Connection, text

from toolgate.adapters.sql.tree.paths import encoded
from toolgate.ports.tree_rules import Path, common_path

MOST_PATHS = 8
"""With more, the path above all of them is locked: the server has room for some thousand locks."""
LOCK = text(
    "SELECT CASE WHEN whole THEN pg_advisory_xact_lock(number)"
    " ELSE pg_advisory_xact_lock_shared(number) END"
    " FROM unnest(CAST(:numbers AS bigint[]), CAST(:wholes AS boolean[])) AS locks (number, whole)"
)


def lock(connection: Connection, namespace: str, paths: Collection[Path]) -> None:
    """Wait until nobody else writes at, above or below these paths."""
    if connection.dialect.name != "postgresql":
        return
    if len(paths) > MOST_PATHS:
        paths = [common_path(paths)]
    wholes: dict[bytes, bool] = {}
    for path in paths:
        for size in range(len(path) + 1):
            wholes[encoded(path[:size])] = size == len(path)
    # In one order for all, the upper path first: so two writers never wait for each other.
    places = sorted(wholes)
    numbers = [_number(namespace, place) for place in places]
    connection.execute(LOCK, {"numbers": numbers, "wholes": [wholes[one] for one in places]})


def _number(namespace: str, place: bytes) -> int:
    digest = hashlib.sha256(namespace.encode() + b"\x00" + place).digest()
    return int.from_bytes(digest[:8], signed=True)
