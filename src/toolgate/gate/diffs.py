"""What a dry run would change, as its caller is told."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolgate.db.changes import DOCUMENTS, Change
from toolgate.gate.principal import Principal, Role
from toolgate.ports.users import is_of_users, without_secrets


class Diff(NamedTuple):
    """The changes in their order, and how many are not told."""

    changes: list[dict[str, Any]]
    """Of each: `store`, `path`, `before` and `after`, which are None for nothing."""
    omitted: int = 0

    def json(self, most_bytes: int) -> str:
        """All that fits, as JSON in ASCII."""
        told: list[str] = []
        size = 0
        for change in self.changes:
            one = json.dumps(change, separators=(",", ":"))
            size += len(one) + 1
            if size > most_bytes:
                break
            told.append(one)
        omitted = self.omitted + len(self.changes) - len(told)
        return f'{{"changes":[{",".join(told)}],"omitted":{omitted}}}'


def diff_of(changes: Sequence[Change], caller: Principal) -> Diff:
    """The changes of a dry run, without what never leaves a store.

    For admins only: a tool may show its other callers less than the documents that it writes.
    """
    if Role.ADMIN not in caller.roles:
        return Diff([], len(changes))
    return Diff([_told(one) for one in changes])


def joined(diffs: Sequence[Diff]) -> Diff:
    """The diff of several calls, one after the other."""
    changes = [one for diff in diffs for one in diff.changes]
    return Diff(changes, sum(diff.omitted for diff in diffs))


def _told(change: Change) -> dict[str, Any]:
    hides = change.store == DOCUMENTS and is_of_users(change.path)
    images = [change.before, change.after]
    before, after = (without_secrets(one) if hides and one else one for one in images)
    return {"store": change.store, "path": change.path, "before": before, "after": after}
