"""Rows and pages of rows, as the stores hand them to the tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListPage:
    """Some rows of a list, in its order."""

    rows: Sequence[Row]
    more: bool
    """Whether others follow."""
