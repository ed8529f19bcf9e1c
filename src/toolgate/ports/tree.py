"""A tree of JSON values by path, with the rules of Firebase Realtime Database on every adapter.

A path is keys joined by `/`; the empty path is the root. What is stored are scalars (booleans,
numbers and strings), each at a path of its own. An object is there as long as something is below
it: null, empty objects and empty lists vanish. `ports.tree_rules` says what may be stored and how
lists are kept, `ports.tree_order` in which order children come. Objects that are read have their
keys in that order. Each pack has a tree of its own, in the namespace of its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import Json
from toolgate.ports.push_ids import push_id

BY_KEY = "$key"
BY_VALUE = "$value"


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in the order: a value, and among the children that have it a key.

    In the order of keys the value is a key, and there is no other.
    """

    value: Json
    key: str | None = None


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """Which children of a path, in which order: by key, by their value, or by one below it.

    Children that lack the value have null there, and come first. The results are always in
    ascending order, also the last ones.
    """

    order_by: str = BY_KEY
    """`$key`, `$value`, or the path from a child to the value."""
    limit_to_first: int | None = None
    limit_to_last: int | None = None
    start_at: Bound | None = None
    start_after: Bound | None = None
    end_at: Bound | None = None
    end_before: Bound | None = None
    equal_to: Bound | None = None


@dataclass(frozen=True, slots=True)
class ServerTime:
    """A value: the time of the write in milliseconds since 1970, one for all values of a write."""


@dataclass(frozen=True, slots=True)
class Increment:
    """A value: the number that is there and so much more; where none is, this number."""

    by: int | float


@dataclass(frozen=True, slots=True)
class SetValue:
    """This value at the path and nothing else, whatever was there before; null removes it."""

    path: str
    value: Json


@dataclass(frozen=True, slots=True)
class UpdateChildren:
    """New values at several paths below one, all at once; what is not named stays."""

    path: str
    changes: Mapping[str, Json]
    """By paths that begin at `path`; none of them above another."""


@dataclass(frozen=True, slots=True)
class Push:
    """A new child with a key that sorts after those before; `key` tells which."""

    path: str
    value: Json
    key: str = field(default_factory=push_id)


@dataclass(frozen=True, slots=True)
class Remove:
    """Nothing at the path any more, nor below it."""

    path: str


TreeWrite: TypeAlias = SetValue | UpdateChildren | Push | Remove


class TreeRefused(Exception):
    """The tree cannot hold this, or cannot be asked so. The message is fit for a caller."""


class TreeTooLarge(TreeRefused):
    """More is at the path than can be read at once."""


class TreeStore(Protocol):
    """Reads and writes a tree.

    Every method raises `StoreUnavailable` when the store does not answer, and `TreeRefused` for
    a path, a value or a query that breaks a rule.
    """

    joins_transaction: bool
    """Whether a write becomes visible only when the gate's transaction commits."""

    async def get(
        self, path: str, query: TreeQuery | None = None, *, shallow: bool = False
    ) -> Json:
        """Return what is at a path, or None.

        With a query: its children that pass, by key, in the query's order; none for a scalar.
        `shallow`, without a query: of an object, its keys in order, each with True; lists too.
        """
        ...

    async def write(self, tx: Transaction, *writes: TreeWrite) -> None:
        """Store these, in order; all of them or, where one raises, none.

        What one of them stores and a later one removes was never there: a scalar above it, which
        it would have replaced, stays.
        """
        ...

    async def transact(self, tx: Transaction, path: str, work: Callable[[Json], Json]) -> Json:
        """Replace the value at a path by what the work makes of it, and return what is stored.

        The work may be begun anew where others change the value meanwhile, so it does nothing
        else; to stop, it raises. Raises `StoreContended` where that happens too often.
        """
        ...

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...
