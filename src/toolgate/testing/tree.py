"""A tree in nested dicts, for tests that need a store which is not the gate's database."""

import time
from collections.abc import Callable, Sequence
from typing import cast

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import Json
from toolgate.ports.tree import SetValue, TreeQuery, TreeWrite
from toolgate.ports.tree_order import key_rank, selected
from toolgate.ports.tree_queries import check_query, value_path
from toolgate.ports.tree_rules import Node, at, json_of, path_of, placed, worked_out
from toolgate.ports.tree_writes import changes_of


class MemoryTree:
    """Loses everything at the end of the process. Nodes are replaced, never changed."""

    joins_transaction = False

    def __init__(self) -> None:
        self._root: Node = None

    async def get(
        self, path: str, query: TreeQuery | None = None, *, shallow: bool = False
    ) -> Json:
        """Return what is at a path, its keys, or those of its children that pass."""
        node = at(self._root, path_of(path))
        if query is not None:
            check_query(query, shallow=shallow)
            return _queried(node, query)
        if shallow and isinstance(node, dict):
            return dict.fromkeys(sorted(cast("dict[str, Node]", node), key=key_rank), True)
        return json_of(node)

    async def write(self, tx: Transaction, *writes: TreeWrite) -> None:
        """Store these at once, whatever becomes of the transaction."""
        self._store(writes)

    async def transact(self, tx: Transaction, path: str, work: Callable[[Json], Json]) -> Json:
        """Nobody else can write meanwhile."""
        self._store([SetValue(path, work(await self.get(path)))])
        return await self.get(path)

    async def check(self) -> None:
        """Memory always answers."""

    async def close(self) -> None:
        """Nothing to give back."""

    def _store(self, writes: Sequence[TreeWrite]) -> None:
        root, now = self._root, time.time_ns() // 1_000_000
        for path, new in changes_of(writes).items():
            root = placed(root, path, worked_out(new, at(self._root, path), now))
        self._root = root


def _queried(node: Node, query: TreeQuery) -> Json:
    children = cast("dict[str, Node]", node) if isinstance(node, dict) else {}
    value = value_path(query)
    keys = selected([(key, at(child, value)) for key, child in children.items()], query)
    return {key: json_of(children[key]) for key in keys}
