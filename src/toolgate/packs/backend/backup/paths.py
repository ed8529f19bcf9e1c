"""Which documents are left out of a backup, by an expression that takes linear time."""

from collections.abc import Callable

from toolgate.packs.backend.patterns import compiled


def path_matcher(expression: str) -> Callable[[str], bool]:
    """Whether a path has this expression somewhere in it; raises `BadPattern`."""
    pattern = compiled(expression)
    return lambda path: pattern.search(path) is not None
