"""What several writes to a tree do together: new nodes at paths, none of them above another.

So every store writes the same, in any order, and one that knows a single atomic request sends one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio.to_thread

from toolgate.ports.tree import (
    Increment,
    Push,
    Remove,
    SetValue,
    TreeRefused,
    TreeWrite,
    UpdateChildren,
)
from toolgate.ports.tree_rules import Node, Path, leaves, node_of, path_of, placed

MANY = 1000
"""Values whose check takes so long that others should not wait for it."""


async def checked_changes(writes: Sequence[TreeWrite]) -> dict[Path, Node]:
    """The same as `changes_of`, but what is much is looked at in a thread, off the event loop."""
    given = [_value_of(write) for write in writes]
    if holds_more_than(MANY, given):
        return await anyio.to_thread.run_sync(changes_of, writes)
    return changes_of(writes)


def holds_more_than(most: int, value: Any) -> bool:
    """Whether a value of JSON has more values in it, lists and objects counted too."""
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if isinstance(one, dict | list):
            inside = cast("dict[str, Any] | list[Any]", one)
            if seen + len(inside) > most:
                return True
            waiting += inside.values() if isinstance(inside, dict) else inside
    return seen > most


def _value_of(write: TreeWrite) -> Any:
    match write:
        case UpdateChildren():
            return dict(write.changes)
        case Remove():
            return None
        case _:
            return write.value


def changes_of(writes: Sequence[TreeWrite]) -> dict[Path, Node]:
    """New nodes by path, None where nothing is left; checked, with the writes in their order."""
    root = _Branch()
    for write in writes:
        for path, node in _changes(write):
            root.put(path, node)
    return dict(root.changes())


def _changes(write: TreeWrite) -> list[tuple[Path, Node]]:
    match write:
        case SetValue():
            path = path_of(write.path)
            return [(path, node_of(write.value, path))]
        case Push():
            path = path_of(f"{write.path}/{write.key}")
            return [(path, node_of(write.value, path))]
        case Remove():
            return [(path_of(write.path), None)]
        case UpdateChildren():
            return _updates(write)


def _updates(write: UpdateChildren) -> list[tuple[Path, Node]]:
    updates: dict[Path, Node] = {}
    for relative, value in write.changes.items():
        if not relative.strip("/"):
            raise TreeRefused("An update must name children: its paths must not be empty.")
        path = path_of(f"{write.path}/{relative.removeprefix('/')}")
        if path in updates:
            raise TreeRefused(f"An update must not name {relative!r} twice.")
        updates[path] = node_of(value, path)
    for path in updates:
        above = next((path[:size] for size in range(len(path)) if path[:size] in updates), None)
        if above is not None:
            raise TreeRefused(
                f"An update must not name both {'/'.join(above)!r} and {'/'.join(path)!r} below it."
            )
    return list(updates.items())


@dataclass(slots=True)
class _Branch:
    """What becomes of one path: a node as a whole, or changes below it."""

    below: dict[str, "_Branch"] = field(default_factory=dict[str, "_Branch"])
    node: Node = None
    whole: bool = False

    def put(self, path: Path, node: Node) -> None:
        branch = self
        for depth, key in enumerate(path):
            if branch.whole:
                _refuse_increments(node)
                branch.node = placed(branch.node, path[depth:], node)
                return
            branch = branch.below.setdefault(key, _Branch())
        if branch.whole or branch.below:
            _refuse_increments(node)
        branch.below, branch.node, branch.whole = {}, node, True

    def changes(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        if self.whole:
            yield path, self.node
        for key, branch in self.below.items():
            yield from branch.changes((*path, key))


def _refuse_increments(node: Node) -> None:
    """A store works out increments from what was there before all writes, not between two."""
    if any(isinstance(leaf, Increment) for _, leaf in leaves(node)):
        raise TreeRefused("One write must not both change and then increment a path: use two.")
