"""firestore_query: what it finds, in which order, and what it refuses."""

import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statements import noted_statements

from toolgate.packs.backend import document_search, text_filters
from toolgate.packs.backend.document_queries import QueryInput
from toolgate.packs.backend.document_search import find_documents
from toolgate.packs.backend.patterns import compiled
from toolgate.ports.documents import Set, StoreUnavailable
from toolgate.testing import Kit, opened_kit
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio

Query = dict[str, Any]


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, database__url=database_url) as opened:
        yield opened


async def keep(kit: Kit, collection: str, documents: dict[str, dict[str, Any]]) -> None:
    store = kit.app.documents.of("backend")
    writes = [Set(collection, name, fields) for name, fields in documents.items()]
    for first in range(0, len(writes), 1000):
        async with kit.app.gate.database.transaction() as tx:
            await store.write(tx, *writes[first : first + 1000])


async def found(kit: Kit, *queries: Query) -> list[str]:
    outcome = await kit.call("firestore_query", queries=list(queries))
    assert outcome.status == 200, outcome.body
    assert outcome.body.keys() == {"results"}
    return [one["path"] for one in outcome.body["results"]]


async def refusal(kit: Kit, *queries: Any) -> str:
    outcome = await kit.send("firestore_query", {"queries": list(queries)})
    assert outcome.status == 400, outcome.body
    return outcome.body["error"]


PEOPLE: dict[str, dict[str, Any]] = {
    "ann": {"age": 30, "city": "Rome", "tags": ["a", "b"]},
    "bob": {"age": 25, "city": "Oslo", "tags": ["b"]},
    "cat": {"age": 35, "city": "Rome", "tags": []},
    "dan": {"age": None, "city": "oslo"},
    "eve": {"city": "Lima", "name": "Roman"},
}


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (("age", "==", 30), "ann"),
        (("age", "!=", 30), "bob cat"),
        (("age", "<", 30), "bob"),
        (("age", "<=", 30), "bob ann"),
        (("age", ">", 30), "cat"),
        (("age", ">=", 30), "ann cat"),
        (("age", "in", [25, 35]), "bob cat"),
        (("age", "not-in", [25]), "ann cat"),
        (("tags", "array-contains", "b"), "ann bob"),
        (("tags", "array-contains-any", ["a", "z"]), "ann"),
    ],
)
async def test_the_ten_operators(kit: Kit, where: tuple[str, str, Any], names: str) -> None:
    await keep(kit, "people", PEOPLE)
    condition = dict(zip(("field", "operator", "value"), where, strict=True))
    wanted = [f"people/{name}" for name in names.split()]
    assert await found(kit, {"collection": "people", "where": [condition]}) == wanted


async def test_queries_at_once_tell_each_document_once(kit: Kit) -> None:
    await keep(kit, "people", PEOPLE)
    await keep(kit, "people/ann/pets", {"rex": {"age": 3}})
    rome = {"field": "city", "operator": "==", "value": "Rome"}
    by_age = [{"field": "age", "order": "desc"}]
    paths = await found(
        kit,
        {"collection": "people", "orderBy": by_age, "limit": 2},
        {"collection": "people", "where": [rome]},
        {"collection": ""},
        {"collection": "people/ann/pets"},
        {"collection": "nothing"},
    )
    assert paths == ["people/cat", "people/ann", "people/ann/pets/rex"]


async def test_cursors_of_several_fields(kit: Kit) -> None:
    numbered = {f"d{n}": {"a": n // 3, "b": n % 3} for n in range(9)}
    await keep(kit, "grid", numbered)
    order = [{"field": "a"}, {"field": "b", "order": "desc"}]
    query = {"collection": "grid", "orderBy": order, "startAfter": [1, 1], "endAt": [2, 1]}
    assert await found(kit, query) == ["grid/d3", "grid/d8", "grid/d7"]
    query = {"collection": "grid", "orderBy": [{"field": "a"}], "startAt": 2, "limit": 2}
    assert await found(kit, query) == ["grid/d6", "grid/d7"]
    by_id = {"collection": "grid", "orderBy": [{"field": "__name__", "order": "desc"}]}
    assert await found(kit, {**by_id, "startAfter": "d2"}) == ["grid/d1", "grid/d0"]


async def test_a_filter_comes_before_the_limit(kit: Kit) -> None:
    await keep(kit, "many", {f"d{n:04}": {"text": f"number {n}"} for n in range(450)})
    query = {"collection": "many", "filter": [{"field": "text", "matches": "9$"}], "limit": 40}
    names = await found(kit, query)
    assert names == [f"many/d{n:04}" for n in range(9, 400, 10)]
    assert await found(kit, {**query, "limit": None, "filterIndex": [2, 4]}) == names[2:4]
    assert await found(kit, {**query, "filterIndex": [38, 100]}) == names[38:]


async def test_a_filter_looks_for_texts_in_one_field_or_another(kit: Kit) -> None:
    await keep(kit, "people", PEOPLE)

    async def names(**pattern: str) -> list[str]:
        return await found(kit, {"collection": "people", "filter": [pattern]})

    assert await names(field="name || city", matches="^Rom") == [
        "people/ann",
        "people/cat",
        "people/eve",
    ]
    assert await names(field="city", matches="/^oslo$/i") == ["people/bob", "people/dan"]
    assert await names(field="age", matches="3") == [], "only texts match"
    assert len(await names(field="city")) == 5


async def test_an_evil_pattern_is_answered_in_time(kit: Kit) -> None:
    await keep(kit, "evil", {f"d{n}": {"text": "a" * 30_000 + "!"} for n in range(10)})
    query = {"collection": "evil", "filter": [{"field": "text", "matches": "(a+)+$"}]}
    began = time.perf_counter()
    assert await found(kit, query) == []
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({}, "queries[0].collection is required"),
        ({"collection": "a/b"}, "queries[0].collection must have an odd number of segments"),
        ({"collection": "a", "limit": 0}, "queries[0].limit must be at least 1"),
        ({"collection": "a", "limit": 10**9}, "queries[0].limit must be at most 1000"),
        (
            {"collection": "a", "where": [["b", "=", 1]]},
            'where must list objects such as {"field": "plan", "operator": "==", "value": "basic"}',
        ),
        (
            {"collection": "a", "where": [{"field": "b"}]},
            "queries[0].where[0].operator is required",
        ),
        (
            {"collection": "a", "where": [{"field": "b", "operator": "=", "value": 1}]},
            "operator must be one of: ==, !=, <, <=, >, >=, in, not-in, array-contains",
        ),
        (
            {"collection": "a", "where": [{"field": "b", "operator": "in", "value": 1}]},
            "must be a list of 1 to 30 values for operator 'in'",
        ),
        (
            {"collection": "a", "where": [{"field": "b", "operator": "<", "value": None}]},
            "must not be null for operator '<'",
        ),
        (
            {"collection": "a", "where": [{"field": "__name__", "operator": "==", "value": "x"}]},
            "use `firestore_read`",
        ),
        ({"collection": "a", "startAt": 1}, "startAt has a value for each field of orderBy"),
        (
            {"collection": "a", "orderBy": [{"field": "b"}], "startAt": 1, "startAfter": 2},
            "startAt and startAfter exclude each other",
        ),
        ({"collection": "a", "filterIndex": [2, 1]}, "filterIndex must not end before it begins"),
        ({"collection": "a", "filter": [{"field": "b", "matches": "("}]}, "no regular expression"),
        ({"collection": "a", "filter": [{"field": "b", "matches": "(?=a)"}]}, "invalid perl"),
        ({"collection": "a", "filter": [{"field": "b", "matches": "/a/x"}]}, "unknown flag 'x'"),
        (
            {"collection": "a", "filter": [{"field": "b", "matches": "(.{1,32}){31}x"}]},
            "queries[0].filter[0].matches is no regular expression: it becomes 8,964 instructions, "
            "and at most 2,000 are possible",
        ),
        (
            {"collection": "a", "filter": [{"field": "b", "matches": "a" * 301}]},
            "queries[0].filter[0].matches must have at most 300 characters",
        ),
        (
            {"collection": "a", "filter": [{"field": " || ".join("abcdefghijk")}]},
            "field must name at most 10 fields",
        ),
        ({"collection": "a", "filter": [{"field": "b" * 1501}]}, "must have at most 1500 bytes"),
        ({"collection": "a", "filter": [{"field": "b||c" * 5000}]}, "at most 15000 characters"),
        ({"collection": "a", "filter": [{"field": "b || "}]}, "must be a field name"),
        ({"collection": "a", "filter": [{"field": "b"}] * 11}, "at most 10"),
        ({"collection": "a", "order": []}, "Unknown argument 'queries[0].order'. Did you mean"),
    ],
)
async def test_a_query_that_cannot_be(kit: Kit, query: Query, told: str) -> None:
    assert told in await refusal(kit, query)


@pytest.mark.parametrize("field", ["api.privateKey", "api", "api.privateKey.x"])
@pytest.mark.parametrize("collection", ["users", "/users", "users/a/sub"])
async def test_nothing_can_be_asked_about_a_private_key(
    kit: Kit, field: str, collection: str
) -> None:
    condition = {"field": field, "operator": ">=", "value": "pk_5"}
    for part in (
        {"where": [condition]},
        {"orderBy": [{"field": field}], "startAt": "pk_5"},
        {"filter": [{"field": f"name || {field}", "matches": "^pk_5"}]},
        {"filter": [{"field": f"name ||  {field} ", "matches": "^pk_5"}]},
    ):
        assert "is a secret" in await refusal(kit, {"collection": collection, **part})
    assert await found(kit, {"collection": "orders", "where": [condition]}) == []


async def test_more_documents_than_one_answer_holds_are_not_cut_in_silence(kit: Kit) -> None:
    await keep(kit, "many", {f"d{n:04}": {"n": n} for n in range(1001)})
    assert "finds more than 1000 documents" in await refusal(kit, {"collection": "many"})
    assert len(await found(kit, {"collection": "many", "limit": 1000})) == 1000
    assert len(await found(kit, {"collection": "many", "filterIndex": [0, 1000]})) == 1000


async def test_a_pattern_is_not_looked_for_without_end(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_search, "MAX_LOOKED_AT", 200)
    await keep(kit, "many", {f"d{n:04}": {"t": "x"} for n in range(300)})
    query = {"collection": "many", "filter": [{"field": "t", "matches": "y"}]}
    assert "narrow it by where" in await refusal(kit, query)


async def test_patterns_of_a_call_are_few(kit: Kit) -> None:
    query = {"collection": "a", "filter": [{"field": "b"}] * 8}
    assert await found(kit, *[query] * 3) == []
    assert "at most 30 patterns (filter) together" in await refusal(kit, *[query] * 4)


async def test_texts_are_not_searched_for_longer_than_a_call_may(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(kit, "texts", {f"d{n}": {"t": "x" * 1000} for n in range(10)})
    query = {"collection": "texts", "filter": [{"field": "t", "matches": "y"}]}
    most = 10 * 1000 * compiled("y").programsize
    monkeypatch.setattr(text_filters.Effort, "__init__", _with_effort(most))
    assert await found(kit, query) == []
    told = await refusal(kit, query, query)
    assert "].filter searches more than a call may: bytes of texts times the size" in told
    assert "Narrow it by where, or use simpler patterns" in told
    longer = {**query, "filter": [{"field": "t", "matches": "yy*zz"}]}
    assert "searches more than a call may" in await refusal(kit, longer)


def _with_effort(most: int) -> Any:
    def effort(self: text_filters.Effort) -> None:
        self.left = most

    return effort


async def test_others_are_answered_while_a_text_is_searched(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes on in its thread until the other call has its answer."""
    await keep(kit, "texts", {"d": {"t": "x"}})
    answered, searched = threading.Event(), text_filters.passing

    def passing(*args: Any) -> Any:
        assert answered.wait(60)
        return searched(*args)

    monkeypatch.setattr(document_search, "passing", passing)
    query = {"collection": "texts", "filter": [{"field": "t", "matches": "x"}]}
    async with anyio.create_task_group() as group:
        group.start_soon(found, kit, query)
        assert (await kit.call("health_check")).status == 200
        answered.set()


def test_the_engine_lets_other_threads_run_while_it_searches() -> None:
    pattern, text = compiled("(.{1,10}){10}x"), b"abcdefghij klm" * 2000
    ended, turns = threading.Event(), 0

    def search() -> None:
        for _ in range(200):
            if turns:  # on a busy machine it may take some searches until the other one gets a core
                break
            pattern.search(text)
        ended.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # so that a thread gives the interpreter away only by itself
    try:
        thread = threading.Thread(target=search)
        thread.start()
        while not ended.wait(0.0001):
            turns += 1
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert turns > 0


async def test_large_documents_do_not_fill_the_memory(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_search, "MAX_BYTES", 100_000)
    await keep(kit, "large", {f"d{n:04}": {"t": "x" * 10_000} for n in range(50)})
    outcome = await kit.call("firestore_query", queries=[{"collection": "large"}])
    assert (outcome.status, "Give a lower limit" in outcome.body["error"]) == (413, True)


async def test_of_many_documents_only_the_first_are_read(kit: Kit) -> None:
    await keep(kit, "many", {f"d{n:05}": {"n": n} for n in range(3000)})
    query = {"collection": "many", "orderBy": [{"field": "n", "order": "desc"}], "limit": 10}
    with noted_statements() as statements:
        names = await found(kit, query)
    assert names == [f"many/d{n:05}" for n in range(2999, 2989, -1)]
    assert sum("document_index" in one for one in statements) == 1


async def test_a_store_that_fails_is_told_in_a_sentence(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise StoreUnavailable("The document store does not answer. Try again later.")

    monkeypatch.setattr(type(kit.app.documents.of("backend")), "query", fail)
    outcome = await kit.call("firestore_query", queries=[{"collection": "a"}])
    assert (outcome.status, outcome.body) == (
        503,
        {"error": "The document store does not answer. Try again later."},
    )


# Against a plain model of Firestore's rules

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.0, 2.0]),
    st.sampled_from(["", "a", "b", "é"]),
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2),
)
KINDS: list[tuple[type, ...]] = [(type(None),), (bool,), (int, float), (str,), (list,), (dict,)]
DOCUMENTS = st.lists(
    st.dictionaries(st.sampled_from(["v", "w"]), VALUES, max_size=2), min_size=1, max_size=12
)


def kind(value: Any) -> int:
    return next(n for n, types in enumerate(KINDS) if isinstance(value, types))


def difference(left: Any, right: Any) -> int:
    if kind(left) != kind(right):
        return kind(left) - kind(right)
    if isinstance(left, dict):
        left, right = (
            [part for pair in sorted(one.items()) for part in pair] for one in (left, right)
        )
    if isinstance(left, list):
        parts = (difference(a, b) for a, b in zip(left, right, strict=False))
        return next(filter(None, parts), len(left) - len(right))
    return 0 if left is None else (left > right) - (left < right)


def model(documents: Sequence[dict[str, Any]], query: Query) -> list[str]:
    """What Firestore would find, by looking at every document."""
    order = [(one["field"], one["order"] == "desc") for one in query["orderBy"]]
    rows = [(f"d{n:02}", one) for n, one in enumerate(documents)]
    rows = [one for one in rows if all(field in one[1] for field, _ in order)]
    for one in query["where"]:
        rows = [row for row in rows if one["field"] in row[1] and holds(row[1][one["field"]], one)]
    last = order[-1][1]

    def by_place(left: tuple[str, Any], right: tuple[str, Any]) -> int:
        for field, descending in order:
            if found := difference(left[1][field], right[1][field]):
                return -found if descending else found
        by_id = (left[0] > right[0]) - (left[0] < right[0])
        return -by_id if last else by_id

    rows.sort(key=functools.cmp_to_key(by_place))

    def beside(row: Any, values: Any) -> int:
        for (field, descending), value in zip(order, values, strict=False):
            if found := difference(row[1][field], value):
                return -found if descending else found
        return 0

    tests = {
        "startAt": lambda n: n >= 0,
        "startAfter": lambda n: n > 0,
        "endAt": lambda n: n <= 0,
        "endBefore": lambda n: n < 0,
    }
    for name, test in tests.items():
        if name in query:
            rows = [row for row in rows if test(beside(row, query[name]))]
    return [f"c/{name}" for name, _ in rows[: query.get("limit")]]


def holds(value: Any, condition: dict[str, Any]) -> bool:
    operand = condition["value"]
    same = value is not None and difference(value, operand) == 0
    match condition["operator"]:
        case "==":
            return difference(value, operand) == 0
        case "!=":
            return value is not None and not same
        case ">":
            return kind(value) == kind(operand) and difference(value, operand) > 0
        case _:
            return kind(value) == kind(operand) and difference(value, operand) <= 0


@st.composite
def queries(draw: st.DrawFn) -> Query:
    fields = draw(st.lists(st.sampled_from(["v", "w"]), min_size=1, max_size=2, unique=True))
    query: Query = {
        "collection": "c",
        "orderBy": [
            {"field": one, "order": draw(st.sampled_from(["asc", "desc"]))} for one in fields
        ],
        "where": [],
    }
    if draw(st.booleans()):
        operator = draw(st.sampled_from(["==", "!=", ">", "<="]))
        value = draw(VALUES.filter(lambda one: one is not None))
        query["where"] = [{"field": fields[0], "operator": operator, "value": value}]
    for names in (("startAt", "startAfter"), ("endAt", "endBefore")):
        if draw(st.booleans()):
            values = [draw(VALUES) for _ in fields[: draw(st.integers(1, 2))]]
            query[draw(st.sampled_from(names))] = values
    if draw(st.booleans()):
        query["limit"] = draw(st.integers(1, 5))
    return query


@given(documents=DOCUMENTS, query=queries())
@settings(max_examples=300)
async def test_a_query_finds_what_firestore_would(
    documents: list[dict[str, Any]], query: Query
) -> None:
    store = MemoryDocuments()
    every = [Set("c", f"d{n:02}", one) for n, one in enumerate(documents)]
    await store.write(None, *every)  # type: ignore[arg-type]
    given = QueryInput.model_validate(query)
    assert [path for path, _ in await find_documents(store, given, "q")] == model(documents, query)
