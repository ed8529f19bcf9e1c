"""Cursors: only the very text that was given out is taken back."""

import pytest

from toolgate.gate.cursors import Cursors
from toolgate.gate.errors import InvalidArguments

CURSORS = Cursors(b"k" * 32)
LISTING = ("a.list", "prefix")
POSITIONS = {"none over": "ab", "one over": "abc", "two over": "abcd"}


@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
def test_a_cursor_comes_back_as_it_was_given_out(position: str) -> None:
    cursor = CURSORS.make(LISTING, [position])
    assert "=" not in cursor
    assert CURSORS.read(LISTING, cursor) == [position]


@pytest.mark.parametrize("position", POSITIONS.values(), ids=POSITIONS)
def test_another_spelling_of_the_same_bytes_is_refused(position: str) -> None:
    cursor = CURSORS.make(LISTING, [position])
    padded = [cursor + "=", cursor + "==", cursor + "=" * (-len(cursor) % 4 or 4)]
    unused_bits = [cursor[:-1] + chr(ord(cursor[-1]) + 1)]
    for other in padded + unused_bits:
        with pytest.raises(InvalidArguments, match="cursor is not one that this list gave out"):
            CURSORS.read(LISTING, other)
