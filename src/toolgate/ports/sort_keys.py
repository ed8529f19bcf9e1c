"""Values as bytes in Firestore's order, so that a database can keep and search them in it.

What `filters.compare` says of two values, a comparison of their keys says too.

A key begins with the place of the value's type among the types. Numbers follow as a double, then
what a double cannot hold of a 64-bit integer; text ends with a mark that is less than any
character, lists and maps with one that is less than any value.
"""

import struct
import sys
from collections.abc import Callable, Collection, Iterable
from heapq import nsmallest
from typing import cast

from toolgate.ports.documents import Fields, Json
from toolgate.ports.filters import rank

END = b"\0"
"""Of a list or a map; less than the first byte of any key."""
END_OF_TEXT = b"\0\1"
NUL = b"\0\xff"
"""A NUL inside a text: more than its end, less than any other character."""
SIGN = 1 << 63
ALL_BITS = (1 << 64) - 1
REST_OFFSET = 1 << 15
"""A double is off by at most 512 for an integer of 64 bits; kept as a positive number."""
LEAST_FIELD_BYTES = 4
"""Of a map: an empty name, and null."""
TYPES = [bytes([number + 1]) for number in range(6)]
NULL = TYPES[0]
FALSE, TRUE = TYPES[1] + b"\0", TYPES[1] + b"\1"
NUMBER, TEXT, LIST, MAP = TYPES[2:]
_pack = struct.Struct(">QH").pack
_bits = struct.Struct(">Q").unpack
_double = struct.Struct(">d").pack


def sort_key(value: Json, most: int = sys.maxsize) -> bytes:
    """The key of a value, or its first `most` bytes: no more of the value is looked at."""
    match value:
        case str():
            # A character has at least one byte.
            return (TEXT + value[:most].encode().replace(b"\0", NUL) + END_OF_TEXT)[:most]
        case None:
            return NULL[:most]
        case bool():
            return (TRUE if value else FALSE)[:most]
        case int() | float():
            return (NUMBER + _number(value))[:most]
        case list():
            return list_key((sort_key(one, most) for one in cast("list[Json]", value)), most)
        case _:
            fields = cast(Fields, value)
            return map_key(fields, lambda name: sort_key(fields[name], most), most)


def list_key(keys: Iterable[bytes], most: int) -> bytes:
    """The beginning of a list's key, from those of its elements."""
    return _sequence(LIST, keys, most)


def map_key(names: Collection[str], key_of: Callable[[str], bytes], most: int) -> bytes:
    """The beginning of a map's key, from those of the values of its fields."""
    enough = most // LEAST_FIELD_BYTES + 1
    first = sorted(names) if len(names) <= enough else nsmallest(enough, names)
    parts = (key for name in first for key in (sort_key(name, most), key_of(name)))
    return _sequence(MAP, parts, most)


def type_bounds(value: Json) -> tuple[bytes, bytes]:
    """The least key that a value of this type can have, and the first beyond."""
    place = rank(value) + 1
    return bytes([place]), bytes([place + 1])


def _number(value: float) -> bytes:
    double = float(value) + 0.0  # minus zero is zero
    rest = value - int(double) if isinstance(value, int) else 0
    bits = _bits(_double(double))[0]
    ordered = bits ^ ALL_BITS if bits & SIGN else bits | SIGN
    return _pack(ordered, rest + REST_OFFSET)


def _sequence(kind: bytes, keys: Iterable[bytes], most: int) -> bytes:
    made = bytearray(kind)
    for key in keys:
        made += key
        if len(made) >= most:
            break
    else:
        made += END
    return bytes(made[:most])
