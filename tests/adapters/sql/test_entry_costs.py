"""What the entries of a document take grows with its size, not with how deep its values are."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import pytest

from toolgate.adapters.sql.documents import index as entries
from toolgate.adapters.sql.documents.index import MAX_KEY_BYTES, CollectionIndex, index_key
from toolgate.ports import sort_keys
from toolgate.ports.documents import Fields, Json

INDEX = CollectionIndex("n", "c", frozenset())
FIELDS = 1000
DEPTH = 17


def nested(fields: Fields, name: str = "m") -> Fields:
    for _ in range(DEPTH):
        fields = {name: fields}
    return fields


@pytest.fixture
def keys_made(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """The values of which keys are made."""
    made: list[Json] = []
    make: Callable[..., bytes] = sort_keys.sort_key

    def noted(value: Json, *bound: int) -> bytes:
        made.append(value)
        return make(value, *bound)

    monkeypatch.setattr(sort_keys, "sort_key", noted)
    monkeypatch.setattr(entries, "sort_key", noted)
    return made


def test_no_key_is_made_once_for_every_map_around_it(keys_made: list[Json]) -> None:
    document = nested({f"f{one}": one for one in range(FIELDS)})
    assert len(INDEX.entries(document)) == FIELDS + DEPTH
    assert len([one for one in keys_made if isinstance(one, int)]) == FIELDS
    assert len(keys_made) <= 2 * (FIELDS + DEPTH)  # names too


@pytest.mark.parametrize("kind", ["list", "map", "nested list", "nested map"])
def test_no_more_of_a_value_is_looked_at_than_its_entry_keeps(
    kind: str, keys_made: list[Json]
) -> None:
    many: dict[str, Json] = {
        "list": [0] * 3000,
        "map": dict.fromkeys(map(str, range(3000))),
        "nested list": [[[0] * 3000]] * 10,
        "nested map": nested(dict.fromkeys(map(str, range(3000)))),
    }
    assert len(index_key(many[kind])) == MAX_KEY_BYTES
    assert len(keys_made) <= MAX_KEY_BYTES


class CountedHash:
    """A hash that counts the bytes that it is given."""

    given = 0

    def __init__(self, start: bytes = b"", *, copied: Any = None, **options: Any) -> None:
        self._hash = copied or blake2b(start, **options)
        CountedHash.given += len(start)

    def update(self, more: bytes) -> None:
        CountedHash.given += len(more)
        self._hash.update(more)

    def copy(self) -> "CountedHash":
        return CountedHash(copied=self._hash.copy())

    def digest(self) -> bytes:
        return self._hash.digest()


def test_long_names_above_many_fields_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "blake2b", CountedHash)
    monkeypatch.setattr(CountedHash, "given", 0)
    name = "long" * 300
    document = nested({f"f{one:03}": one for one in range(FIELDS)}, name)
    assert len(INDEX.entries(document)) == FIELDS + DEPTH
    # For values and for elements.
    assert 0 < CountedHash.given <= 2 * (FIELDS * len("f000 ") + DEPTH * len(f"{name} ") + 10)
