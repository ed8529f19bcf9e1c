"""What may be in a tree, and the form in which it is kept.

A node is a scalar, None for nothing, or a dict of nodes by key that is never empty. A list becomes
a node with its indexes as keys. Read again, a node is a list where all of its keys are indexes (no
sign, no leading zero) and at least half of those from 0 to the largest are there; what is missing
in between is null. So Firebase's own clients do.
"""

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias, cast

from toolgate.ports.documents import Json
from toolgate.ports.rules import LARGEST_INTEGER, SMALLEST_INTEGER
from toolgate.ports.tree import Increment, ServerTime, TreeRefused
from toolgate.ports.tree_order import key_rank

MAX_KEY_BYTES = 768
MAX_PATH_BYTES = 768
"""Of all keys of a path with the slashes in between, as Firebase's own clients have it."""
MAX_DEPTH = 32
MAX_STRING_BYTES = 10 * 1024 * 1024
MAX_INDEX_DIGITS = 10
FORBIDDEN = re.compile(r"[.$#\[\]/\x00-\x1f\x7f]")
INDEX = re.compile(r"0|[1-9][0-9]*")

Path: TypeAlias = tuple[str, ...]
Node: TypeAlias = Any
"""A scalar, a dict of nodes, or None; where it is about to be written, also a server value."""


def path_of(path: str) -> Path:
    """The keys of a path. A slash at its beginning or end is of no account."""
    inner = path.removeprefix("/").removesuffix("/")
    keys = tuple(inner.split("/")) if inner else ()
    for key in keys:
        check_key(key)
    _check_depth(keys)
    return keys


def common_path(paths: Collection[Path]) -> Path:
    """The lowest path that all of these are at or below."""
    first, last = min(paths), max(paths)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return tuple(key for key, _ in same)


def node_of(value: Json, path: Path = ()) -> Node:
    """A value as it is kept at a path, without what vanishes."""
    match value:
        case dict() | list() | tuple():
            node: dict[str, Node] = {}
            for key, one in _children(value):
                child = node_of(one, _below(path, key))
                if child is not None:
                    node[key] = child
            return node or None
        case None | bool() | ServerTime():
            return value
        case Increment():
            _check_number(value.by, path)
            return value
        case int() | float():
            _check_number(value, path)
            return value
        case str():
            _check_string(value, path)
            return value
        case _:
            raise TreeRefused(f"{_named(path)} must be JSON, not {type(value).__name__}.")


def json_of(node: Node) -> Json:
    """A node as it is read: keys in order, lists where they are lists."""
    if not isinstance(node, dict):
        return node
    children = cast("dict[str, Node]", node)
    if _is_list(children):
        values = [None] * (1 + max(int(key) for key in children))
        for key, child in children.items():
            values[int(key)] = json_of(child)
        return values
    return {key: json_of(children[key]) for key in sorted(children, key=key_rank)}


def at(node: Node, path: Path) -> Node:
    """What is below a node, or None."""
    for key in path:
        node = cast("dict[str, Node]", node).get(key) if isinstance(node, dict) else None
    return node


def placed(node: Node, path: Path, new: Node) -> Node:
    """A node with another one below it. Nothing below a scalar leaves the scalar as it is."""
    if not path:
        return new
    if new is None and not isinstance(node, dict):
        return node
    children = dict(cast("dict[str, Node]", node)) if isinstance(node, dict) else {}
    child = placed(children.get(path[0]), path[1:], new)
    if child is None:
        children.pop(path[0], None)
    else:
        children[path[0]] = child
    return children or None


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every scalar of a node with its path."""
    if isinstance(node, dict):
        for key, child in cast("dict[str, Node]", node).items():
            yield from leaves(child, (*path, key))
    elif node is not None:
        yield path, node


def worked_out(new: Node, before: Node, milliseconds: int) -> Node:
    """A node with its server values worked out from what is there before the write."""
    match new:
        case dict():
            children = cast("dict[str, Node]", new)
            return {
                key: worked_out(child, at(before, (key,)), milliseconds)
                for key, child in children.items()
            }
        case ServerTime():
            return milliseconds
        case Increment():
            return increased(before, new.by)
        case _:
            return new


def _children(value: Any) -> Iterator[tuple[str, Json]]:
    if not isinstance(value, dict):
        yield from ((str(index), one) for index, one in enumerate(value))
        return
    for key, one in cast("Mapping[Any, Json]", value).items():
        if not isinstance(key, str):
            raise TreeRefused(f"A key must be a string, not {type(key).__name__}.")
        yield key, one


def _below(path: Path, key: str) -> Path:
    check_key(key)
    child = (*path, key)
    _check_depth(child)
    return child


def check_key(key: str) -> None:
    """Raise `TreeRefused` for what cannot be a key."""
    if not key:
        raise TreeRefused("A path must not have an empty key: write keys joined by single slashes.")
    if FORBIDDEN.search(key):
        raise TreeRefused(
            f"Key {key!r} must not contain '.', '$', '#', '[', ']', '/' or a control character."
        )
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise TreeRefused(f"Key {key!r} must be valid Unicode text.") from None
    if size > MAX_KEY_BYTES:
        raise TreeRefused(f"A key must have at most {MAX_KEY_BYTES} bytes, not {size}.")


def _check_depth(path: Path) -> None:
    if len(path) > MAX_DEPTH:
        raise TreeRefused(f"A path must have at most {MAX_DEPTH} keys.")
    if len("/".join(path).encode()) > MAX_PATH_BYTES:
        raise TreeRefused(f"A path must have at most {MAX_PATH_BYTES} bytes.")


def _check_number(number: float, path: Path) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise TreeRefused(f"{_named(path)} must be a finite number.")
    if isinstance(number, int) and not SMALLEST_INTEGER <= number <= LARGEST_INTEGER:
        raise TreeRefused(f"{_named(path)} must be an integer of at most 64 bits.")


def _check_string(value: str, path: Path) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise TreeRefused(f"{_named(path)} must be valid Unicode text.") from None
    if size > MAX_STRING_BYTES:
        raise TreeRefused(f"{_named(path)} must have at most {MAX_STRING_BYTES:,} bytes.")


def _named(path: Path) -> str:
    return f"The value at {'/'.join(path)!r}" if path else "The value"


def _is_list(children: Mapping[str, Node]) -> bool:
    if not all(len(key) <= MAX_INDEX_DIGITS and INDEX.fullmatch(key) for key in children):
        return False
    return max(int(key) for key in children) < 2 * len(children)


def increased(before: Node, by: float) -> float:
    """A number and so much more; the increment alone where there is no number."""
    if isinstance(before, bool) or not isinstance(before, int | float):
        return by
    total = before + by
    if isinstance(total, int) and not SMALLEST_INTEGER <= total <= LARGEST_INTEGER:
        return float(total)
    if not math.isfinite(total):
        raise TreeRefused("An increment must not go beyond the largest number.")
    return total
