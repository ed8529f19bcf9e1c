"""Versions of a node's configuration: ULIDs, so that a later one is greater as a text too."""

import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Base 32 of Crockford."""
LENGTH = 26
RANDOM_BITS = 80


def next_version(after: str | None, seconds: float) -> str:
    """A ULID of this time; greater than `after`, also within its millisecond or before it."""
    number = (int(seconds * 1000) << RANDOM_BITS) | secrets.randbits(RANDOM_BITS)
    if after is not None:
        number = max(number, _number(after) + 1)
    digits = [ALPHABET[number >> (5 * place) & 31] for place in reversed(range(LENGTH))]
    return "".join(digits)


def _number(version: str) -> int:
    number = 0
    for digit in version:
        number = number * 32 + ALPHABET.index(digit)
    return number
