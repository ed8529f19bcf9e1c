"""Whatever the value: the beginning of its key is the beginning of its whole key."""

from collections.abc import Iterator
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import effort

from toolgate.adapters.sql.documents.index import MAX_KEY_BYTES, CollectionIndex, Entry, Path
from toolgate.ports.documents import Fields, Json
from toolgate.ports.sort_keys import sort_key

MANY = settings(max_examples=effort(200, 5000), deadline=None)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = TEXTS | st.sampled_from(["a", "b", "\0", "n" * 600])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(["\0" * 40, "é" * 500, "t" * 2000])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=30,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)


@MANY
@given(VALUES, st.integers(0, 80))
def test_a_bounded_key_is_the_beginning_of_the_whole_one(value: Json, most: int) -> None:
    whole = sort_key(value)
    assert sort_key(value, most) == whole[:most]
    assert sort_key(value, len(whole)) == sort_key(value, len(whole) + 1) == whole


@given(st.integers(0, 400), st.integers(0, 1200))
def test_of_a_map_with_many_fields_the_first_by_name_are_in_its_key(size: int, most: int) -> None:
    # The shortest that fields can be, so as many as possible are in the key.
    fields = dict.fromkeys([chr(1 + number) for number in reversed(range(size))])
    assert sort_key(fields, most) == sort_key(fields)[:most]


@MANY
@given(DOCUMENTS)
def test_an_entry_has_the_beginning_of_its_values_key(document: Fields) -> None:
    index = CollectionIndex("n", "c", frozenset({("a",), ("b", "a")}))
    assert index.entries(document) == set(expected(index, document, ()))


def expected(index: CollectionIndex, fields: Fields, above: Path) -> Iterator[Entry]:
    for name, value in fields.items():
        path = (*above, name)
        if not index.covers(path):
            continue
        yield index.values(path), sort_key(value)[:MAX_KEY_BYTES]
        if isinstance(value, dict):
            yield from expected(index, cast(Fields, value), path)
        elif isinstance(value, list):
            for one in cast("list[Json]", value):
                yield index.elements(path), sort_key(one)[:MAX_KEY_BYTES]
