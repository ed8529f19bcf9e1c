"""The realtime tree by path: any JSON, down to single values."""

from collections.abc import Callable
from typing import Any, cast

from toolgate.db.transactions import Transaction
from toolgate.packs.network.data.firestore import Change, Found, Part
from toolgate.packs.network.errors import (
    invalid,
    invalid_path,
    invalid_type,
    not_found,
    store_errors,
)
from toolgate.ports.documents import Json
from toolgate.ports.tree import (
    BY_KEY,
    Bound,
    Push,
    Remove,
    SetValue,
    TreeQuery,
    TreeRefused,
    TreeStore,
    TreeWrite,
    UpdateChildren,
)
from toolgate.ports.tree_rules import json_of, node_of, path_of, placed
from toolgate.ports.tree_writes import checked_changes


async def read(tree: TreeStore, path: str, part: Part | None, *, shallow: bool) -> Found:
    """What is at a path, its keys, or those of its children that the part names."""
    _check_path(path)
    if part is not None and part == Part():
        part = None
    if part is not None and shallow:
        raise invalid(
            "shallow",
            "shallow must not be given together with query",
            suggestion="Leave one of them out.",
        )
    with store_errors("query"):
        query = None if part is None else _query(part)
        data = await tree.get(path, query, shallow=shallow)
        there = bool(data) if query else data is not None
        if not there and (query is None or await tree.get(path, shallow=True) is None):
            raise not_found(
                path,
                f"There is nothing at {path}.",
                f"Read {path.rpartition('/')[0] or 'a path above'} with shallow to see what is.",
            )
    many = cast("dict[str, Any] | list[Any]", data) if isinstance(data, dict | list) else [data]
    return Found(data, len(many))


def _query(part: Part) -> TreeQuery:
    order = part.order_by or BY_KEY
    for name, value in (("startAt", part.start_at), ("endAt", part.end_at)):
        if value is not None and order == BY_KEY and not isinstance(value, str):
            raise invalid(
                f"query.{name}",
                f"query.{name} must be a key where children are in the order of keys",
                value,
                "Name what it is a value of in query.orderBy.",
            )
    return TreeQuery(
        order_by=order,
        limit_to_first=part.limit,
        start_at=None if part.start_at is None else Bound(part.start_at),
        end_at=None if part.end_at is None else Bound(part.end_at),
    )


async def write(tree: TreeStore, tx: Transaction, change: Change) -> str | None:
    """Write; returns the key that was made for a new child."""
    _check_path(change.path)
    if change.operation in ("update", "push") and change.data is None:
        raise invalid_type(
            None, f"data must not be null to {change.operation}", "Use operation delete."
        )
    one = _write_of(change)
    with store_errors():
        if change.transaction:
            await checked_changes([one])  # an update may break rules that its result does not
            path, work = _work(one)
            await tree.transact(tx, path, work)
        else:
            await tree.write(tx, one)
    return one.key if isinstance(one, Push) else None


def _write_of(change: Change) -> TreeWrite:
    path, data = change.path, change.data
    match change.operation:
        case "delete":
            return Remove(path)
        case "push":
            return Push(path, data)
        case "update":
            if not isinstance(data, dict):
                raise invalid_type(
                    data,
                    "data must be an object to update: new values by the keys of children",
                    "Use operation set to replace the whole.",
                )
            return UpdateChildren(path, cast("dict[str, Any]", data))
        case _:
            return SetValue(path, data)


def _work(one: TreeWrite) -> tuple[str, Callable[[Json], Json]]:
    """The same write as what becomes of the value at a path."""
    match one:
        case Push():
            return f"{one.path}/{one.key}", lambda _: one.value
        case Remove():
            return one.path, lambda _: None
        case SetValue():
            return one.path, lambda _: one.value
        case UpdateChildren():
            return one.path, lambda before: _updated(before, one)


def _updated(before: Json, update: UpdateChildren) -> Json:
    node = node_of(before)
    for relative, value in update.changes.items():
        node = placed(node, path_of(relative), node_of(value))
    return json_of(node)


def _check_path(path: str) -> None:
    try:
        path_of(path)
    except TreeRefused as refused:
        raise invalid_path(
            path, f"path is not valid: {refused}", "Choose a shorter path."
        ) from None
