"""Whatever is written and asked: every store of documents says what Firestore's rules say."""

import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.document_stores import OWN, Opened, opened_documents
from tests.effort import effort
from tests.loops import one_loop
from tests.properties import document_model as model

from toolgate.ports.documents import (
    Create,
    Cursor,
    Delete,
    DocumentExists,
    DocumentNotFound,
    Fields,
    Filter,
    Merge,
    Operator,
    Order,
    Query,
    Set,
    Update,
    Write,
)
from toolgate.ports.transforms import ArrayRemove, ArrayUnion, DeleteField, Increment

__all__ = ["one_loop"]

pytestmark = pytest.mark.anyio

MANY = settings(
    max_examples=effort(40, 1000),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
IDS = st.sampled_from(["a", "b", "B", "ab", "a-b", "é", "\uff5e", "😀"])
NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=2).map(".".join)
NUMBERS = st.integers(-2, 2) | st.sampled_from([0.5, 1.0, -1.5, 2**53, 2**53 + 1, 1e300])
TEXTS = st.sampled_from(["", "a", "b", "aa", "B", "1", "é", "\uff5e", "😀"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
FLAT_MAPS = st.dictionaries(NAMES, SCALARS, max_size=2)
LISTS = st.lists(SCALARS | FLAT_MAPS, max_size=3)
MAPS = st.dictionaries(NAMES, SCALARS | LISTS | FLAT_MAPS, max_size=3)
VALUES = SCALARS | LISTS | MAPS
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=3)

# Queries

LISTS_OF_VALUES = st.lists(VALUES, max_size=3)
FILTERS = st.one_of(
    st.builds(
        Filter,
        PATHS,
        st.sampled_from(
            [
                Operator.EQUAL,
                Operator.NOT_EQUAL,
                Operator.LESS,
                Operator.LESS_OR_EQUAL,
                Operator.GREATER,
                Operator.GREATER_OR_EQUAL,
                Operator.ARRAY_CONTAINS,
            ]
        ),
        VALUES,
    ),
    st.builds(
        Filter,
        PATHS,
        st.sampled_from([Operator.IN, Operator.NOT_IN, Operator.ARRAY_CONTAINS_ANY]),
        LISTS_OF_VALUES,
    ),
)
IN_ARRAYS = {Operator.ARRAY_CONTAINS, Operator.ARRAY_CONTAINS_ANY}
NOT_BESIDE_NOT_IN = {Operator.NOT_EQUAL, Operator.IN, Operator.ARRAY_CONTAINS_ANY}


def firestore_takes(filters: list[Filter]) -> bool:
    """Whether Firestore combines these; the others take any."""
    used = [one.operator for one in filters]
    if Operator.NOT_IN in used and (NOT_BESIDE_NOT_IN & {*used} or used.count(Operator.NOT_IN) > 1):
        return False
    return sum(one in IN_ARRAYS for one in used) < 2


ORDERS = st.lists(
    st.builds(Order, PATHS, st.booleans()), max_size=2, unique_by=lambda one: one.field
)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """A query; its cursors have values for the first fields of its whole order."""
    filters = draw(st.lists(FILTERS, max_size=2).filter(firestore_takes))
    order = draw(ORDERS)
    if draw(st.booleans()):
        order.append(Order(model.NAME, draw(st.booleans())))
    fields = [one.field for one in model.whole_order(filters, order)]

    def cursor() -> Cursor | None:
        if draw(st.integers(0, 2)):
            return None
        known = fields[: draw(st.integers(1, len(fields)))]
        values = [draw(IDS if field == model.NAME else VALUES) for field in known]
        return Cursor(tuple(values), draw(st.booleans()))

    limit = draw(st.none() | st.integers(1, 4))
    return Query("", filters, order, limit, cursor(), cursor())


# Writes

TRANSFORMS = st.one_of(
    st.builds(Increment, st.sampled_from([1, -2, 0.5])),
    st.builds(ArrayUnion, st.lists(SCALARS | FLAT_MAPS, max_size=3)),
    st.builds(ArrayRemove, st.lists(SCALARS | FLAT_MAPS, max_size=3)),
    st.just(DeleteField()),
)
CHANGES = st.one_of(
    VALUES, TRANSFORMS, st.dictionaries(NAMES, SCALARS | TRANSFORMS | FLAT_MAPS, max_size=2)
)
WRITTEN = st.dictionaries(NAMES, CHANGES, max_size=3)


def apart(changes: Fields) -> bool:
    """Whether no path leads into another."""
    return not any(other.startswith(f"{one}.") for one in changes for other in changes)


BY_PATH = st.dictionaries(PATHS, CHANGES, max_size=3).filter(apart)
WRITES = st.one_of(
    st.builds(Create, st.just(""), IDS, WRITTEN),
    st.builds(Set, st.just(""), IDS, WRITTEN),
    st.builds(Merge, st.just(""), IDS, WRITTEN),
    st.builds(Update, st.just(""), IDS, BY_PATH),
    st.builds(Delete, st.just(""), IDS),
)


@pytest.fixture(scope="module", params=OWN)
async def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Opened]:
    folder = tmp_path_factory.mktemp("documents")
    async with opened_documents(request.param, request, folder) as store:
        yield store


COLLECTIONS = (f"examples{number}" for number in itertools.count())
"""A new one for each example: the stores stay open."""


def in_collection(write: Write, collection: str) -> Write:
    """The same write there."""
    match write:
        case Update(document_id=name, changes=changes):
            return Update(collection, name, changes)
        case Delete(document_id=name):
            return Delete(collection, name)
        case _:
            return type(write)(collection, write.document_id, write.fields)


def text(value: Any) -> str:
    """JSON that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


async def check(opened: Opened, documents: dict[str, Fields], query: Query) -> None:
    store, _ = opened
    found = [(one.id, one.fields) for one in await store.query(query)]
    assert text(found) == text(model.found(documents, query))


@MANY
@given(
    documents=st.dictionaries(IDS, DOCUMENTS, min_size=1),
    asked=st.lists(queries(), min_size=1, max_size=6),
)
async def test_a_query_finds_what_the_rules_say(
    opened: Opened, documents: dict[str, Fields], asked: list[Query]
) -> None:
    store, transaction = opened
    here = next(COLLECTIONS)
    async with transaction() as tx:
        await store.write(tx, *(Create(here, name, one) for name, one in documents.items()))
    for one in asked:
        query = Query(here, one.filters, one.order, one.limit, one.start, one.end)
        await check(opened, documents, query)


@MANY
@given(
    documents=st.dictionaries(IDS, DOCUMENTS, max_size=3),
    batches=st.lists(st.lists(WRITES, min_size=1, max_size=3), min_size=1, max_size=3),
    asked=queries(),
)
async def test_writes_leave_what_the_rules_say(
    opened: Opened, documents: dict[str, Fields], batches: list[list[Write]], asked: Query
) -> None:
    store, transaction = opened
    here = next(COLLECTIONS)
    batches = [[Create("", name, one) for name, one in documents.items()], *batches]
    documents = {}
    for batch in batches:
        writes = [in_collection(one, here) for one in batch]
        async with transaction() as tx:
            try:
                documents = model.after(documents, batch)
            except (DocumentExists, DocumentNotFound) as refusal:
                with pytest.raises(type(refusal)):
                    await store.write(tx, *writes)
            else:
                await store.write(tx, *writes)
        await check(opened, documents, Query(here))
    query = Query(here, asked.filters, asked.order, asked.limit, asked.start, asked.end)
    await check(opened, documents, query)
