"""Finding the children of a path without reading what is below them.

Each step of the recursion looks for the first row after all rows of the child before: one look-up
in the index for each child, however much is below it. SQLAlchemy has no words for slices of bytes
that both databases know, so these statements are written out for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, TextClause, text

Direction = Literal["up", "down"]

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Words:
    """Slices of bytes in the words of one database."""

    child: str
    """The path of a child of `:base`, from a path at or below it."""
    end: str
    join: str
    """Two byte strings as one."""


WORDS = {
    "sqlite": _Words(
        "substr({path}, 1, :base + instr(substr({path}, :base + 1), x'00'))",
        "x'03'",
        # What SQLite puts together is text, which is never as large as bytes are.
        "CAST({one} || {other} AS BLOB)",
    ),
    "postgresql": _Words(
        "substring({path} from 1 for CAST(:base AS integer) + position('\\x00'::bytea in"
        " substring({path} from CAST(:base AS integer) + 1)))",
        "'\\x03'::bytea",
        "({one} || {other})",
    ),
}

FIRST_ROW = (
    "SELECT path FROM tree_nodes WHERE namespace = :namespace AND path >= :low AND path < :high"
    " ORDER BY path {direction} LIMIT 1"
)
CHILDREN = """
WITH RECURSIVE rows (path) AS (
  SELECT * FROM ({first}) AS found
  UNION ALL
  SELECT (
    SELECT path FROM tree_nodes WHERE namespace = :namespace
      AND path >= {low} AND path < {high} ORDER BY path {direction} LIMIT 1
  ) FROM rows WHERE rows.path IS NOT NULL
)
SELECT {child} AS child FROM rows WHERE rows.path IS NOT NULL LIMIT :limit
"""
VALUES = """
SELECT places.child, places.path, tree_nodes.value FROM (
  SELECT child, (
    SELECT path FROM tree_nodes WHERE namespace = :namespace
      AND path >= {low} AND path < {high} ORDER BY path LIMIT 1
  ) AS path FROM ({children}) AS children
) AS places LEFT JOIN tree_nodes
  ON tree_nodes.namespace = :namespace AND tree_nodes.path = places.path
"""


def children(
    connection: Connection,
    bounds: dict[str, Any],
    direction: Direction = "up",
    limit: int | None = None,
) -> list[bytes]:
    """The paths of the children in a range, in the order of keys or, going down, against it.

    `bounds`: `namespace`, `low` and `high`, and `base`, the length of the parent's path.
    """
    statement = text(_children(connection.dialect.name, direction))
    values = {**bounds, "limit": limit or NO_LIMIT}
    return [bytes(path) for path in connection.execute(statement, values).scalars()]


def values(
    connection: Connection, bounds: dict[str, Any], below: bytes
) -> Sequence[tuple[bytes, bytes | None, str | None]]:
    """Of each child in a range: its path, the first path at or below a place in it, the value.

    No path where nothing is there; that of the place itself where a scalar is.
    """
    statement = _values(connection.dialect.name)
    rows = connection.execute(statement, {**bounds, "limit": NO_LIMIT, "below": below})
    return [(bytes(child), path and bytes(path), value) for child, path, value in rows]


def _children(dialect: str, direction: Direction) -> str:
    words = WORDS[dialect]
    child = words.child.format(path="rows.path")
    after = words.join.format(one=child, other=words.end)
    up = direction == "up"
    order = "ASC" if up else "DESC"
    return CHILDREN.format(
        first=FIRST_ROW.format(direction=order),
        low=after if up else ":low",
        high=":high" if up else child,
        child=child,
        direction=order,
    )


def _values(dialect: str) -> TextClause:
    words = WORDS[dialect]
    low = words.join.format(one="child", other=":below")
    high = words.join.format(one=low, other=words.end)
    return text(VALUES.format(low=low, high=high, children=_children(dialect, "up")))
