"""Reading a tree from its table: a part of it, the keys of a path, or the children that pass."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import orjson
from sqlalchemy import Connection, bindparam, select, union_all

from toolgate.adapters.sql.tree import scans
from toolgate.adapters.sql.tree.paths import END, FIRST, decoded, encoded
from toolgate.db.prepared import PreparedStatement, Row
from toolgate.db.tables import tree_nodes
from toolgate.ports.documents import Json
from toolgate.ports.tree import BY_KEY, TreeQuery, TreeTooLarge
from toolgate.ports.tree_order import selected
from toolgate.ports.tree_queries import value_path
from toolgate.ports.tree_rules import Node, json_of

IN_RANGE = (
    select(tree_nodes.c.path, tree_nodes.c.value)
    .where(
        tree_nodes.c.namespace == bindparam("namespace"),
        tree_nodes.c.path >= bindparam("low"),
        tree_nodes.c.path < bindparam("high"),
    )
    .order_by(tree_nodes.c.path)
)
RANGE = PreparedStatement(IN_RANGE)
FEW_ROWS = 100
FEW = PreparedStatement(IN_RANGE.limit(FEW_ROWS + 1))
MOST_ROWS = 200_000
"""Values that are read at once: more than a result may hold, and less than the memory does."""
MOST = PreparedStatement(IN_RANGE.limit(MOST_ROWS + 1))
AT_ONCE = 100
"""Children read by one statement."""


def node_at(connection: Connection, namespace: str, place: bytes) -> Node:
    """All that is at a path and below it; raises `TreeTooLarge` where that is too much."""
    rows = MOST.rows(connection, {"namespace": namespace, "low": place, "high": place + END})
    if len(rows) > MOST_ROWS:
        raise TreeTooLarge(
            f"There are more than {MOST_ROWS:,} values there. Read a path further below, with "
            "shallow, or with a limit."
        )
    return node_of(rows, len(place))


def small_node_at(connection: Connection, namespace: str, place: bytes) -> tuple[bool, Node]:
    """All that is at a path and below it, and whether it is that: False where it is much."""
    bounds = {"namespace": namespace, "low": place, "high": place + END}
    rows = FEW.rows(connection, bounds)
    if len(rows) > FEW_ROWS:
        return False, None
    return True, node_of(rows, len(place))


def keys_at(connection: Connection, namespace: str, place: bytes) -> Json:
    """The keys of an object, each with True; a scalar as it is."""
    children = scans.children(connection, _bounds(namespace, place))
    if not children:
        return node_at(connection, namespace, place)
    return {_key(child, place): True for child in children}


def query(connection: Connection, namespace: str, place: bytes, asked: TreeQuery) -> Json:
    """The children that pass, in order."""
    if asked.order_by == BY_KEY:
        return _by_key(connection, namespace, place, asked)
    return _by_value(connection, namespace, place, asked)


def _by_key(connection: Connection, namespace: str, place: bytes, asked: TreeQuery) -> Json:
    """A range of the table; with a limit, as far as the keys that were looked for first."""
    bounds = _key_bounds(namespace, place, asked)
    limit = asked.limit_to_first or asked.limit_to_last
    if limit is not None:
        direction = "up" if asked.limit_to_first else "down"
        found = scans.children(connection, bounds, direction, limit)
        if not found:
            return {}
        bounds |= {"low": min(found), "high": max(found) + END}
    node = node_of(_rows(connection, namespace, bounds["low"], bounds["high"]), len(place))
    children = cast("dict[str, Node]", node or {})
    # Once more, because others may have written between the two statements.
    return {
        key: json_of(children[key]) for key in selected(((key, None) for key in children), asked)
    }


def _by_value(connection: Connection, namespace: str, place: bytes, asked: TreeQuery) -> Json:
    below = encoded(value_path(asked))
    found: dict[str, bytes] = {}
    values: list[tuple[str, Json]] = []
    for child, path, value in scans.values(connection, _bounds(namespace, place), below):
        key = _key(child, place)
        found[key] = child
        values.append((key, _sort_value(path, value, child + below)))
    keys = selected(values, asked)
    if len(keys) == len(found):
        rows: Sequence[Row] = _rows(connection, namespace, place + FIRST, place + END)
    else:
        rows = _rows_below(connection, namespace, [found[key] for key in keys])
    node = cast("dict[str, Node]", node_of(rows, len(place)) or {})
    return {key: json_of(node[key]) for key in keys if key in node}


def _sort_value(path: bytes | None, value: str | None, place: bytes) -> Json:
    """Null where nothing is, the scalar, or an object, all of which are alike in the order."""
    if path is None or value is None:
        return None
    return orjson.loads(value) if path == place else {}


def _bounds(namespace: str, place: bytes) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "base": len(place),
        "low": place + FIRST,
        "high": place + END,
    }


def _key_bounds(namespace: str, place: bytes, asked: TreeQuery) -> dict[str, Any]:
    bounds = _bounds(namespace, place)
    if start := asked.start_at or asked.equal_to:
        bounds["low"] = place + encoded([start.value])
    if asked.start_after:
        bounds["low"] = place + encoded([asked.start_after.value]) + END
    if end := asked.end_at or asked.equal_to:
        bounds["high"] = place + encoded([end.value]) + END
    if asked.end_before:
        bounds["high"] = place + encoded([asked.end_before.value])
    return bounds


def _rows(connection: Connection, namespace: str, low: bytes, high: bytes) -> Sequence[Row]:
    return RANGE.rows(connection, {"namespace": namespace, "low": low, "high": high})


def _rows_below(connection: Connection, namespace: str, places: Sequence[bytes]) -> Sequence[Row]:
    """The rows at and below each of these paths."""
    rows: list[Row] = []
    columns = select(tree_nodes.c.path, tree_nodes.c.value)
    for start in range(0, len(places), AT_ONCE):
        ranges = [
            columns.where(
                tree_nodes.c.namespace == namespace,
                tree_nodes.c.path >= place,
                tree_nodes.c.path < place + END,
            )
            for place in places[start : start + AT_ONCE]
        ]
        rows += connection.execute(union_all(*ranges)).all()
    return rows


def node_of(rows: Iterable[Row], base: int) -> Node:
    """What rows are together, seen from a path of so many bytes."""
    root: dict[str, Node] = {}
    for path, value in rows:
        *above, key = decoded(path[base:]) or (None,)
        if key is None:
            return orjson.loads(value)
        node = root
        for one in above:
            node = node.setdefault(one, {})
        node[key] = orjson.loads(value)
    return root or None


def _key(child: bytes, place: bytes) -> str:
    return decoded(child[len(place) :])[0]
