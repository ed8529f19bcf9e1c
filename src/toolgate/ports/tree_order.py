"""The order of children, as Firebase Realtime Database has it.

Keys: first those that are integers of 32 bits, by their number (`2` before `10`; of one number,
the shorter key first: `7` before `07`), then all others by their characters. Strings, keys
included, are compared by code points. Values: null, false, true, numbers, strings, objects, which
are all alike; children with the same value by their keys.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from toolgate.ports.documents import Json
from toolgate.ports.tree import BY_KEY, Bound, TreeQuery

Rank: TypeAlias = tuple[Any, ...]

INTEGER_KEY = re.compile(r"-?0*[0-9]{1,10}")
SMALLEST, LARGEST = -(2**31), 2**31 - 1


def integer_of(key: str) -> int | None:
    """The number that a key is ordered by, if it is one."""
    if not INTEGER_KEY.fullmatch(key):
        return None
    number = int(key)
    return number if SMALLEST <= number <= LARGEST else None


def key_rank(key: str) -> Rank:
    """Where a key is in the order of keys."""
    number = integer_of(key)
    return (1, key) if number is None else (0, number, len(key), key)


def value_rank(value: Json) -> Rank:
    """Where a value is in the order of values."""
    match value:
        case None:
            return (0,)
        case bool():
            return (2,) if value else (1,)
        case int() | float():
            return (3, value)
        case str():
            return (4, value)
        case _:
            return (5,)


def selected(children: Iterable[tuple[str, Json]], query: TreeQuery) -> Sequence[str]:
    """The keys of the children that pass, in order.

    Each comes with the value it is ordered by, which is of no account in the order of keys.
    """
    places = sorted((_place(key, value, query), key) for key, value in children)
    keys = [key for place, key in places if passes(place, query)]
    if query.limit_to_first is not None:
        return keys[: query.limit_to_first]
    if query.limit_to_last is not None:
        return keys[-query.limit_to_last :]
    return keys


def _place(key: str, value: Json, query: TreeQuery) -> Rank:
    rank = key_rank(key)
    return (rank if query.order_by == BY_KEY else value_rank(value), rank)


def passes(place: Rank, query: TreeQuery) -> bool:
    """Whether a place, the rank of a value and that of a key, is within all bounds."""

    def compared(bound: Bound) -> tuple[Rank, Rank]:
        """The place, and the bound, as far as the bound says where it is."""
        by_key = query.order_by == BY_KEY
        rank = key_rank(bound.value) if by_key else value_rank(bound.value)
        if bound.key is None:
            return place[:1], (rank,)
        return place, (rank, key_rank(bound.key))

    def order(bound: Bound | None, *, allowed: Sequence[int]) -> bool:
        if bound is None:
            return True
        here, there = compared(bound)
        return (here > there) - (here < there) in allowed

    return (
        order(query.start_at, allowed=(0, 1))
        and order(query.start_after, allowed=(1,))
        and order(query.end_at, allowed=(0, -1))
        and order(query.end_before, allowed=(-1,))
        and order(query.equal_to, allowed=(0,))
    )
