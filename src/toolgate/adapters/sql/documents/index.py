"""What the index keeps of a document: for each of its fields, the value's sort key.

An entry is (field, key, id). Maps have an entry and so have the fields in them; a list has one,
and one for each of its elements, under a name of their own. A field is named by a hash of where it
is: shorter than its name, and what is found is compared with the document anyway.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, cast

from toolgate.db.row_writes import weight_of
from toolgate.ports.documents import DocumentRefused, Fields, Json, Update, Write
from toolgate.ports.sort_keys import list_key, map_key, sort_key
from toolgate.ports.transforms import DeleteField

MAX_ENTRIES = 40_000
"""Of one document, as in Firestore."""
MAX_KEY_BYTES = 1000
"""Longer values are kept as their beginning: databases bound the size of an entry."""
LARGE_BYTES = 64 * 1024
ENTRY_BYTES = 128
"""What an entry counts, beside the bytes of its value."""
SHORT = 200
"""Texts that differ within so many characters have different keys, however long they are."""
TOO_MANY = (
    f"A document may have at most {MAX_ENTRIES:,} indexed values, counting every "
    "field and every element of a list. Split it, or exempt a field from the "
    "index (setting database.unindexed)."
)
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
        return self._field(path).values

    def elements(self, path: Sequence[str]) -> int:
        """The number under which the elements of a field's lists are."""
        return self._field(path).elements

    def entries(self, fields: Fields | None) -> set[Entry]:
        """The entries of a document; none for no document."""
        made: set[Entry] = set()
        for name, value in (fields or {}).items():
            if (name,) not in self._unindexed:
                self._add(made, value, (name,), _top_field(*self._place, name))
        return made

    def check_given(self, write: Write) -> None:
        """Refuse what has too many values whatever is there before: without a lock, at one look.

        None is counted that may turn out to have no entry of its own; those that are left are
        counted as their entries are made.
        """
        count, left = 0, [*islice(_given(write), MAX_ENTRIES + 1)]
        while left:
            path, value = left.pop()
            if isinstance(value, DeleteField) or (self._unindexed and not self.covers(path)):
                continue
            count += 1
            if isinstance(value, dict):
                inside = islice(cast(Fields, value).items(), MAX_ENTRIES + 1)
                left += [((*path, name), one) for name, one in inside]
            elif isinstance(value, list):
                count += _different(cast("list[Json]", value))
            if count > MAX_ENTRIES:
                raise DocumentRefused(TOO_MANY)

    def _add(self, made: set[Entry], value: Json, path: Path, field: "FieldPlace") -> bytes:
        """Add the entries of a field and of those in it; the key of its value.

        That of a map or a list is put together from those of what is in it, so none is made twice.
        """
        if isinstance(value, dict):
            key = self._add_map(made, cast(Fields, value), path, field)
        elif isinstance(value, list):
            keys = [index_key(one) for one in cast("list[Json]", value)]
            made.update((field.elements, one) for one in keys)
            key = list_key(keys, MAX_KEY_BYTES)
        else:
            key = index_key(value)
        made.add((field.values, key))
        if len(made) > MAX_ENTRIES:
            raise DocumentRefused(TOO_MANY)
        return key

    def _add_map(self, made: set[Entry], fields: Fields, path: Path, field: "FieldPlace") -> bytes:
        keys: dict[str, bytes] = {}
        for name, value in fields.items():
            below = (*path, name)
            if below in self._unindexed:
                keys[name] = index_key(value)  # of the map's own key, it is a part
            else:
                keys[name] = self._add(made, value, below, field.below(name))
        return map_key(keys, keys.__getitem__, MAX_KEY_BYTES)

    def _field(self, path: Sequence[str]) -> "FieldPlace":
        first, *others = path
        field = _top_field(*self._place, first)
        for name in others:
            field = field.below(name)
        return field


class FieldPlace:
    """Where a field is: hashes of its path, with which those of the fields in it go on."""

    __slots__ = ("_hashes", "elements", "values")

    def __init__(self, *hashes: blake2b) -> None:
        self._hashes = hashes
        self.values, self.elements = (int.from_bytes(one.digest(), signed=True) for one in hashes)

    def below(self, name: str) -> "FieldPlace":
        """Where a field of its maps is."""
        return _field_below(self, name)

    def new_below(self, name: str) -> "FieldPlace":
        """The same, worked out."""
        hashes = [one.copy() for one in self._hashes]
        for one in hashes:
            one.update(name.encode() + b"\0")
        return FieldPlace(*hashes)


@lru_cache(maxsize=20_000)
def _top_field(namespace: str, collection: str, name: str) -> FieldPlace:
    start = b"".join(part.encode() + b"\0" for part in (namespace, collection, name))
    return FieldPlace(*(blake2b(start, digest_size=8, person=kind) for kind in (VALUE, ELEMENT)))


@lru_cache(maxsize=5_000)
def _field_below(field: FieldPlace, name: str) -> FieldPlace:
    """Documents of a collection have mostly the same fields."""
    return field.new_below(name)


def _given(write: Write) -> Iterator[tuple[Path, Json]]:
    """The fields that a write gives, with their paths."""
    if isinstance(write, Update):
        return ((tuple(path.split(".")), value) for path, value in write.changes.items())
    return (((name,), value) for name, value in write.fields.items())


def _different(values: list[Json]) -> int:
    """How many of a list's first elements have keys of their own, at the least."""
    some = islice(values, MAX_ENTRIES + 1)
    texts_and_numbers = (one for one in some if isinstance(one, str | int | float))
    return len({one[:SHORT] if isinstance(one, str) else float(one) for one in texts_and_numbers})


def index_key(value: Json) -> bytes:
    """The key of a value, or its beginning."""
    return sort_key(value, MAX_KEY_BYTES)


def is_large(fields: Any) -> bool:
    """Whether entries take so long to make that nobody else should wait for them."""
    return weight_of(fields, LARGE_BYTES, ENTRY_BYTES) > LARGE_BYTES


def is_cut(key: bytes) -> bool:
    """Whether a key may be the beginning of several values' keys."""
    return len(key) == MAX_KEY_BYTES


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
