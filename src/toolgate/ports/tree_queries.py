"""Which queries of a tree can be answered."""

from toolgate.ports.tree import BY_KEY, BY_VALUE, Bound, TreeQuery, TreeRefused
from toolgate.ports.tree_rules import Path, check_key, node_of, path_of

BOUNDS = ("start_at", "start_after", "end_at", "end_before", "equal_to")
APART = (
    ("start_at", "start_after"),
    ("end_at", "end_before"),
    ("limit_to_first", "limit_to_last"),
    *(("equal_to", bound) for bound in BOUNDS[:-1]),
)
"""What must not be given together."""


def check_query(query: TreeQuery, *, shallow: bool = False) -> None:
    """Raise `TreeRefused` for a query that cannot be answered."""
    if shallow:
        raise TreeRefused("shallow must not be given together with a query.")
    value_path(query)
    for one, other in APART:
        if getattr(query, one) is not None and getattr(query, other) is not None:
            raise TreeRefused(f"{one} and {other} must not be given together.")
    for name in ("limit_to_first", "limit_to_last"):
        limit = getattr(query, name)
        if limit is not None and limit < 1:
            raise TreeRefused(f"{name} must be at least 1, not {limit}.")
    for name in BOUNDS:
        if (bound := getattr(query, name)) is not None:
            _check_bound(name, bound, by_key=query.order_by == BY_KEY)


def value_path(query: TreeQuery) -> Path:
    """Where the value that children are ordered by is, seen from a child."""
    if query.order_by in (BY_KEY, BY_VALUE):
        return ()
    path = path_of(query.order_by)
    if not path:
        raise TreeRefused("order_by must be '$key', '$value' or the path of a value.")
    return path


def _check_bound(name: str, bound: Bound, *, by_key: bool) -> None:
    if by_key:
        if not isinstance(bound.value, str) or bound.key is not None:
            raise TreeRefused(f"{name} must be a key, and no other, in the order of keys.")
        check_key(bound.value)
        return
    if not isinstance(bound.value, bool | int | float | str | None):
        raise TreeRefused(f"{name} must be null, a boolean, a number or a string.")
    node_of(bound.value)
    if bound.key is not None:
        check_key(bound.key)
