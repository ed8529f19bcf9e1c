"""What the index keeps of a document: for each of its fields, the value's sort key.

An entry is (field, key, id). Maps have an entry and so have the fields in them; a list has one,
and one for each of its elements, under a name of their own. A field is named by a hash of where it
is: shorter than its name, and what is found is compared with the document anyway.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

from toolgate.ports.documents import DocumentRefused, Fields, Json
from toolgate.ports.sort_keys import sort_key

MAX_ENTRIES = 40_000
"""Of one document, as in Firestore."""
MAX_KEY_BYTES = 1000
"""Longer values are kept as their beginning: databases bound the size of an entry."""
VALUE, ELEMENT = b"value", b"element"

Entry = tuple[int, bytes]
"""The number of a field, and a key."""
Path = tuple[str, ...]


class CollectionIndex:
    """How the documents of one collection are indexed."""

    def __init__(self, namespace: str, collection: str, unindexed: frozenset[Path]) -> None:
        self._place = (namespace, collection)
        self._unindexed = unindexed

    def covers(self, path: Sequence[str]) -> bool:
        """Whether there are entries for a field."""
        return not any(tuple(path[:end]) in self._unindexed for end in range(1, len(path) + 1))

    def values(self, path: Sequence[str]) -> int:
        """The number under which the values of a field are."""
        return _number(*self._place, tuple(path), VALUE)

    def elements(self, path: Sequence[str]) -> int:
        """The number under which the elements of a field's lists are."""
        return _number(*self._place, tuple(path), ELEMENT)

    def entries(self, fields: Fields | None) -> set[Entry]:
        """The entries of a document; none for no document."""
        made: set[Entry] = set()
        for number, value in self._values(fields or {}, ()):
            made.add((number, index_key(value)))
            if len(made) > MAX_ENTRIES:
                raise DocumentRefused(
                    f"A document may have at most {MAX_ENTRIES:,} indexed values, counting every "
                    "field and every element of a list. Split it, or exempt a field from the "
                    "index (setting database.unindexed)."
                )
        return made

    def _values(self, fields: Fields, above: Path) -> Iterator[tuple[int, Json]]:
        for name, value in fields.items():
            path = (*above, name)
            if path in self._unindexed:
                continue
            yield _number(*self._place, path, VALUE), value
            if isinstance(value, dict):
                yield from self._values(cast(Fields, value), path)
            elif isinstance(value, list):
                number = _number(*self._place, path, ELEMENT)
                yield from ((number, one) for one in cast("list[Json]", value))


def index_key(value: Json) -> bytes:
    """The key of a value, or its beginning."""
    return sort_key(value)[:MAX_KEY_BYTES]


def is_cut(key: bytes) -> bool:
    """Whether a key may be the beginning of several values' keys."""
    return len(key) == MAX_KEY_BYTES


@lru_cache(maxsize=20_000)
def _number(namespace: str, collection: str, path: Path, kind: bytes) -> int:
    named = blake2b(digest_size=8, person=kind)
    for part in (namespace, collection, *path):
        named.update(part.encode() + b"\0")
    return int.from_bytes(named.digest(), signed=True)


def unindexed_paths(setting: Sequence[str], collection: str) -> frozenset[Path]:
    """The fields of a collection that a setting exempts: `COLLECTION.FIELD`, or `*.FIELD`.

    A collection below documents goes by its own name, as in Firestore.
    """
    if not setting:
        return frozenset()
    names = ("*", collection.rpartition("/")[2])
    split = [one.partition(".") for one in setting]
    return frozenset(tuple(field.split(".")) for name, _, field in split if name in names)


def rows_of(entries: set[Entry], document_id: str) -> list[dict[str, Any]]:
    """Entries as rows of the table, in the order in which the database keeps them."""
    return [{"field": number, "key": key, "id": document_id} for number, key in sorted(entries)]
