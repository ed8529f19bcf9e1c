"""Filters and orders as Firestore has them."""

from typing import Any

import pytest
from google.cloud.firestore_v1.types import Document
from hypothesis import example, given
from hypothesis import strategies as st
from tests.firestore import wire_server
from tests.firestore.wire_server import WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.firestore.queries import filter_message, passes_nothing
from toolgate.adapters.firestore.values import to_fields
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    Cursor,
    Fields,
    Filter,
    Operator,
    Order,
    Query,
    StoreUnavailable,
)
from toolgate.ports.filters import matches


@pytest.mark.anyio
async def test_a_filter_nothing_can_pass_is_not_even_asked(
    server: WireServer, store: FirestoreDocuments
) -> None:
    for operator in ("<", "<=", ">", ">=", "array-contains"):
        assert await store.query(Query("c", [Filter("n", Operator(operator), None)])) == []
    lists = [("in", [None]), ("in", []), ("array-contains-any", [None]), ("not-in", [1, None])]
    for operator, values in lists:
        assert await store.query(Query("c", [Filter("n", Operator(operator), values)])) == []
    assert server.calls == []


@pytest.mark.anyio
async def test_the_order_is_by_id_and_by_the_compared_field_first(
    store: FirestoreDocuments, tx: Transaction
) -> None:
    for document_id, n in [("c", 1), ("a", 2), ("b", 1), ("d", "text")]:
        await store.write(tx, Create("c", document_id, {"n": n}))

    async def ids(*filters: Filter) -> str:
        return " ".join(one.id for one in await store.query(Query("c", filters)))

    assert await ids() == "a b c d"
    assert await ids(Filter("n", Operator.IN, [1, 2])) == "a b c"
    assert await ids(Filter("n", Operator.GREATER, 0)) == "b c a"
    assert await ids(Filter("n", Operator.NOT_EQUAL, 2)) == "b c d"


plain = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "1", "é"])
deep = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
conditions = st.one_of(
    st.builds(
        Filter,
        st.sampled_from(["a", "a.b"]),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "array-contains"]),
        deep,
    ),
    st.builds(
        Filter,
        st.just("a"),
        st.sampled_from(["in", "not-in", "array-contains-any"]),
        st.lists(deep, max_size=4),
    ),
)


@given(st.dictionaries(st.sampled_from("ab"), deep), conditions)
@example({"a": "abc"}, Filter("a", Operator.NOT_EQUAL, 5))
@example({"a": None}, Filter("a", Operator.NOT_EQUAL, 5))
@example({"a": 1}, Filter("a", Operator.EQUAL, True))
def test_filters_mean_the_same_in_firestore_and_in_python(fields: Fields, loose: Filter) -> None:
    one = Filter(loose.field, Operator(loose.operator), loose.value)
    if passes_nothing(one):
        assert not matches(fields, [one])
        return
    document: Any = Document.pb()(fields=to_fields(fields))
    condition = filter_message(one)
    message = getattr(condition, condition.WhichOneof("filter_type"))
    assert wire_server.passes(document.fields, message) == matches(fields, [one])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("a", "not-in", [1]), ("a", "!=", 2)], "Cannot use 'NOT_IN' with 'NOT_EQUAL'"),
        ([("a", "in", list(range(31)))], "'IN' supports from 1 to 30 comparison values"),
        ([("a", "not-in", list(range(11)))], "'NOT_IN' supports from 1 to 10"),
        ([("a", "array-contains-any", list(range(31)))], "'ARRAY_CONTAINS_ANY' supports"),
        ([("a", "array-contains", 1), ("b", "array-contains", 1)], "A maximum of 1"),
        ([("a", "in", [1, 2, 3, 4, 5, 6]), ("b", "in", [1, 2, 3, 4, 5, 6])], "disjunctions"),
    ],
)
async def test_what_firestore_does_not_combine_is_refused_in_its_words(
    store: FirestoreDocuments, filters: list[tuple[str, str, Any]], expected: str
) -> None:
    query = Query("c", [Filter(field, Operator(one), value) for field, one, value in filters])
    with pytest.raises(StoreUnavailable, match=f"Firestore refused the request: .*{expected}"):
        await store.query(query)


@pytest.mark.anyio
async def test_a_cursor_that_fits_no_order_is_refused(store: FirestoreDocuments) -> None:
    with pytest.raises(StoreUnavailable, match="no more values than the order has fields"):
        await store.query(Query("c", order=[Order("n")], start=Cursor((1, "a", 2), True)))
    with pytest.raises(StoreUnavailable, match="has no slash"):
        await store.query(Query("c", start=Cursor(("a/b",), True)))
    with pytest.raises(StoreUnavailable, match="the id in a cursor is text"):
        await store.query(Query("c", end=Cursor((5,), True)))


@pytest.mark.anyio
async def test_a_limit_of_nothing_is_not_even_asked(
    server: WireServer, store: FirestoreDocuments
) -> None:
    assert await store.query(Query("c", limit=0)) == []
    assert server.calls == []
