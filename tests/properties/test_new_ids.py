"""Ids of documents: every letter is as likely as the others, and none comes twice."""

from collections import Counter

import pytest

from toolgate.ports import documents
from toolgate.ports.documents import ID_LENGTH, LETTERS, new_id


def test_ids_have_their_length_and_letters_and_differ() -> None:
    made = {new_id() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(len(one) == ID_LENGTH and set(one) <= set(LETTERS) for one in made)


def test_each_letter_stands_for_as_many_bytes() -> None:
    kept = bytes(range(256)).translate(documents.LETTER_OF_BYTE, documents.UNEVEN_BYTES)
    assert Counter(kept.decode()) == dict.fromkeys(LETTERS, 4)


def test_bytes_that_stand_for_no_letter_are_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter([b"\xff" * 40, b"\x00" * 15 + b"\xff" * 25, b"\x01" * 40])

    def next_bytes(count: int) -> bytes:
        return next(given)[:count]

    monkeypatch.setattr(documents.secrets, "token_bytes", next_bytes)
    assert new_id() == LETTERS[0] * 15 + LETTERS[1] * 5
