"""Attributes of callers and tools: all that policy looks at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attribute(Generic[T]):
    """One attribute: its Cedar type, where its value comes from, and what it says."""

    type: str
    value: Callable[[T], Any]
    """Hashable: decisions are remembered by all of them."""
    meaning: str
    values: tuple[str, ...] = ()
    """All the values there are, where they can be counted; a rule that names another is wrong."""


def words(members: Iterable[str]) -> tuple[str, ...]:
    """The values of an enumeration."""
    return tuple(str(one) for one in members)
