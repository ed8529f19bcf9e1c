"""Paths of a tree as bytes, whose order is that of the tree.

Each key ends with a zero byte, which no key contains. Before it stands a byte that tells integers
from other keys, so that they come first; an integer begins with its number and its length in
hexadecimal digits, so that `2` comes before `10` and `7` before `07`. So a path is the beginning
of exactly the paths below it, and these are one range that ends before `END`.
"""

from collections.abc import Iterable

from toolgate.ports.tree_order import integer_of
from toolgate.ports.tree_rules import Path

INTEGER, TEXT = b"\x01", b"\x02"
FIRST, END = INTEGER, b"\x03"
"""A path and then FIRST is before all that is below the path; a path and then END, after it."""
NUMBER_DIGITS, LENGTH_DIGITS = 8, 3
STOP = b"\x00"


def encoded(path: Iterable[str]) -> bytes:
    """A path as bytes."""
    return b"".join(map(_segment, path))


def decoded(path: bytes) -> Path:
    """The keys again."""
    return tuple(_key(segment) for segment in path.split(STOP)[:-1])


def _segment(key: str) -> bytes:
    number, text = integer_of(key), key.encode()
    if number is None:
        return TEXT + text + STOP
    return INTEGER + b"%08x%03x" % (number + 2**31, len(text)) + text + STOP


def _key(segment: bytes) -> str:
    integer = segment.startswith(INTEGER)
    return segment[1 + NUMBER_DIGITS + LENGTH_DIGITS if integer else 1 :].decode()
