"""Values as bytes in Firestore's order, so that a database can keep and search them in it.

What `filters.compare` says of two values, a comparison of their keys says too.

A key begins with the place of the value's type among the types. Numbers follow as a double, then
what a double cannot hold of a 64-bit integer; text ends with a mark that is less than any
character, lists and maps with one that is less than any value.
"""

import struct
from collections.abc import Iterable
from typing import Any, cast

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
TYPES = [bytes([number + 1]) for number in range(6)]
NULL = TYPES[0]
FALSE, TRUE = TYPES[1] + b"\0", TYPES[1] + b"\1"
NUMBER, TEXT, LIST, MAP = TYPES[2:]
_pack = struct.Struct(">QH").pack
_bits = struct.Struct(">Q").unpack
_double = struct.Struct(">d").pack


def sort_key(value: Json) -> bytes:
    """The key of a value."""
    match value:
        case str():
            return TEXT + value.encode().replace(b"\0", NUL) + END_OF_TEXT
        case None:
            return NULL
        case bool():
            return TRUE if value else FALSE
        case int() | float():
            return NUMBER + _number(value)
        case list():
            return LIST + _sequence(cast("list[Json]", value))
        case _:
            fields = cast(Fields, value)
            return MAP + _sequence(part for name in sorted(fields) for part in (name, fields[name]))


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


def _sequence(values: Iterable[Any]) -> bytes:
    return b"".join(map(sort_key, values)) + END
