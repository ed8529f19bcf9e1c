"""What a write to a tree has changed, as the change log has it: the paths that were written."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from toolgate.adapters.sql.tree.paths import END, decoded
from toolgate.adapters.sql.tree.reading import node_of
from toolgate.db.changes import TREE, Change
from toolgate.ports.transforms import now
from toolgate.ports.tree_rules import json_of

StoredScalar = tuple[bytes, str]
"""A path, and a value as JSON."""


def changes_between(
    namespace: str,
    places: Iterable[bytes],
    before: Iterable[StoredScalar],
    after: Iterable[StoredScalar],
) -> list[Change]:
    """One for each place, given all scalars that were there and that are.

    Where a scalar above a place had to make room, it is that of the scalar.
    """
    old, new = sorted(before), sorted(after)
    paths = [path for path, _ in old]
    time = now()
    changes: list[Change] = []
    for top in sorted({_top(place, paths) for place in places}):
        was, becomes = (json_of(node_of(_below(rows, top), len(top))) for rows in (old, new))
        if was is not None or becomes is not None:
            path = "/".join(decoded(top))
            changes.append(Change(TREE, namespace, path, was, becomes, time))
    return changes


def _top(place: bytes, paths: Sequence[bytes]) -> bytes:
    """The scalar above a place, if one is among these sorted paths, or the place."""
    # A path is a prefix of what is below it, so the scalar comes right before, if there is one.
    at = bisect_left(paths, place)
    return paths[at - 1] if at and place.startswith(paths[at - 1]) else place


def _below(rows: Sequence[StoredScalar], top: bytes) -> Sequence[StoredScalar]:
    """Of sorted rows, those at and below a place."""
    return rows[bisect_left(rows, (top,)) : bisect_left(rows, (top + END,))]
