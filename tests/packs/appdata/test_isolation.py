"""Whatever is asked: an answer, never an accident, and never what belongs elsewhere."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolgate.gate.errors import GateError, Internal, InvalidArguments, NotFound
from toolgate.gate.principal import ANONYMOUS, Role, of_role
from toolgate.packs.appdata.collections import BUILT_IN
from toolgate.packs.appdata.tools.documents import Operator as ToolOperator
from toolgate.ports.documents import Create, Delete, Fields, Filter, Operator, Query, StoredDocument
from toolgate.ports.ordering import selected
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

TOOLS = [
    "get_document", "query_collection", "create_document", "check_permission",
    "list_user_permissions", "list_collections", "describe_collection",
]  # fmt: skip
HOME = "home"
"""A field in every planted document that names its collection."""

bounded = settings(max_examples=120)

# Text with everything in it that is special to a database, a path or a pattern.
wild_text = st.one_of(
    st.text(st.characters(), max_size=12),
    st.sampled_from(
        ["", ".", "..", "/", "__x__", "a/b", "a\0b", "%", "_", "'", '"', "\\", "$", "*", "[0]",
         "' OR '1'='1", '")--', "abc123", "hub", "users", "users/abc123/permissions", "\ud800",
         "😀", "x" * 1600]
    ),
)  # fmt: skip
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, -0.0, 1, 1.0, 2**53 + 1])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, wild_text)
wild_json = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(wild_text, inner, max_size=3)
    ),
    max_leaves=8,
)
argument_names = st.sampled_from(
    ["collection", "document_id", "filters", "limit", "data", "user_id", "app_id", "permission",
     "collection_name", "more"]
)  # fmt: skip
conditions = st.fixed_dictionaries(
    {},
    optional={
        "field": wild_text,
        "operator": st.one_of(st.sampled_from([*ToolOperator]), wild_text),
        "value": wild_json,
    },
)
wild_arguments = st.one_of(
    st.dictionaries(argument_names, wild_json, max_size=4),
    st.fixed_dictionaries(
        {"collection": st.one_of(st.sampled_from([*BUILT_IN.by_name]), wild_text)},
        optional={
            "filters": st.lists(conditions, max_size=3),
            "limit": numbers,
            "document_id": wild_text,
            "data": st.dictionaries(wild_text, wild_json, max_size=3),
        },
    ),
    wild_json,
)


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    folder = tmp_path_factory.mktemp("isolation")
    async with opened_kit(folder, writes=True, demo_data=True) as opened:
        yield opened


@pytest.fixture(scope="module")
async def planted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    """The same few ids in every collection, and below one document; each says where it lives."""
    async with opened_kit(tmp_path_factory.mktemp("planted")) as opened:
        store = opened.app.documents.of("appdata")
        async with opened.app.gate.database.transaction() as tx:
            for collection in (*BUILT_IN.by_name, "users/abc123/permissions", "secrets", ""):
                for name in ("abc123", "hub", "x'y", "%", "_"):
                    fields = {HOME: collection, "n": 1, "map": {"a": {"b": collection}}}
                    await store.write(tx, Create(collection, name, fields))
        yield opened


# Never an accident


@bounded
@given(tool=st.sampled_from(TOOLS), arguments=wild_arguments)
@example(tool="query_collection", arguments={"collection": "\ud800"})
@example(tool="get_document", arguments={"collection": "users", "document_id": "\udfff"})
@example(
    tool="query_collection",
    arguments={"collection": "users", "filters": [{"field": "a", "operator": [], "value": 1}]},
)
@example(tool="query_collection", arguments={"collection": "users", "limit": float("nan")})
async def test_any_arguments_get_an_answer_in_good_words(
    kit: Kit, tool: str, arguments: Any
) -> None:
    outcome = await kit.send(tool, arguments)
    assert not isinstance(outcome.error, Internal), outcome.body
    assert outcome.error is None or isinstance(outcome.error, GateError)
    assert outcome.raw.decode(), "what goes over the wire is good text"
    if isinstance(outcome.error, InvalidArguments):
        assert outcome.body["error"]
        assert len(outcome.raw) < 64_000, "an error does not repeat a whole request"


@bounded
@given(tool=st.sampled_from(TOOLS[:5]), arguments=wild_arguments)
async def test_who_may_not_see_a_tool_learns_nothing_of_it(
    kit: Kit, tool: str, arguments: Any
) -> None:
    for who in (ANONYMOUS, of_role(Role.USER, "someone", "abc123")):
        outcome = await kit.send(tool, arguments, who)
        assert outcome.body == {"error": f"Unknown tool: {tool}"}


# Never what belongs elsewhere


@bounded
@given(collection=st.sampled_from([*BUILT_IN.by_name]), document_id=wild_text)
async def test_a_document_is_of_the_collection_that_was_asked(
    planted: Kit, collection: str, document_id: str
) -> None:
    outcome = await planted.call("get_document", collection=collection, document_id=document_id)
    if outcome.error is None:
        assert outcome.body[HOME] == collection
        assert outcome.body["id"] == document_id
    else:
        assert isinstance(outcome.error, NotFound | InvalidArguments)


@bounded
@given(
    collection=st.sampled_from([*BUILT_IN.by_name]),
    filters=st.lists(
        st.fixed_dictionaries(
            {
                "field": st.one_of(wild_text, st.sampled_from([HOME, "n", "map.a.b", "map", "id"])),
                "operator": st.sampled_from([*Operator]),
                "value": st.one_of(wild_json, st.sampled_from([1, "users", "secrets", {}])),
            }
        ),
        max_size=3,
    ),
)
async def test_documents_found_are_of_the_collection_that_was_asked(
    planted: Kit, collection: str, filters: list[dict[str, Any]]
) -> None:
    outcome = await planted.call(
        "query_collection", collection=collection, filters=filters, limit=100
    )
    if outcome.error is None:
        assert all(one[HOME] == collection for one in outcome.body["data"])
        assert outcome.body["count"] == len(outcome.body["data"]) <= 5
    else:
        assert isinstance(outcome.error, InvalidArguments), outcome.body


# A filter means one thing


names = st.sampled_from(["a", "b", "a b", "A", "é", "1", "a-b", "x'y", 'q"', "$", "a_b"])
plain_text = st.one_of(
    st.sampled_from(["", "a", "A", "b", "é", "1", "1.0", "true", "null", "[1]", "😀"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
)
plain_numbers = st.one_of(
    st.sampled_from([0, 1, -1, 1.0, 0.5, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
plain_scalars = st.one_of(st.none(), st.booleans(), plain_numbers, plain_text)
flat_lists = st.lists(plain_scalars, max_size=3)
plain_values = st.one_of(
    plain_scalars, flat_lists, st.dictionaries(names, st.one_of(plain_scalars, flat_lists))
)
stored_fields = st.dictionaries(names, plain_values, max_size=4)
in_lists = st.lists(plain_values, min_size=1, max_size=4)
paths = st.lists(names, min_size=1, max_size=2).map(".".join)


good_filters = st.one_of(
    st.builds(
        Filter,
        paths,
        st.sampled_from([Operator.EQUAL, Operator.NOT_EQUAL, Operator.ARRAY_CONTAINS]),
        plain_values,
    ),
    st.builds(
        Filter,
        paths,
        st.sampled_from(
            [
                Operator.LESS,
                Operator.LESS_OR_EQUAL,
                Operator.GREATER,
                Operator.GREATER_OR_EQUAL,
            ]
        ),
        plain_values.filter(lambda value: value is not None),
    ),
    st.builds(Filter, paths, st.just(Operator.IN), in_lists),
)


async def only(kit: Kit, stored: list[Fields]) -> None:
    """Make these the documents of one collection."""
    store = kit.app.documents.of("appdata")
    async with kit.app.gate.database.transaction() as tx:
        await store.write(
            tx,
            *(Delete("groups", one.id) for one in await store.query(Query("groups"))),
            *(Create("groups", f"d{number}", fields) for number, fields in enumerate(stored)),
        )


@settings(max_examples=150)
@given(
    stored=st.lists(stored_fields, min_size=1, max_size=8),
    filters=st.lists(good_filters, min_size=1, max_size=2),
    limit=st.integers(1, 10),
)
async def test_a_query_finds_what_the_rules_say(
    kit: Kit, stored: list[Fields], filters: list[Filter], limit: int
) -> None:
    await only(kit, stored)
    outcome = await kit.call(
        "query_collection",
        collection="groups",
        filters=[
            {"field": one.field, "operator": one.operator.value, "value": one.value}
            for one in filters
        ],
        limit=limit,
    )
    documents = [StoredDocument(f"d{n}", fields) for n, fields in enumerate(stored)]
    expected = [one.id for one in selected(documents, Query("groups", filters, limit=limit))]
    assert outcome.error is None, outcome.body
    assert [one["id"] for one in outcome.body["data"]] == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([0.5, "1"], ["d0", "d1"]),
        ([0.5, "text"], ["d0", "d2"]),
        ([0.5, 2**53 + 1], ["d0", "d3"]),
    ],
)
async def test_a_list_of_numbers_and_texts_is_compared_value_by_value(
    kit: Kit, wanted: list[Any], expected: list[str]
) -> None:
    await only(kit, [{"a": 0.5}, {"a": "1"}, {"a": "text"}, {"a": 2**53 + 1}])
    condition = {"field": "a", "operator": "in", "value": wanted}
    outcome = await kit.call("query_collection", collection="groups", filters=[condition])
    assert outcome.error is None, outcome.body
    assert [one["id"] for one in outcome.body["data"]] == expected
