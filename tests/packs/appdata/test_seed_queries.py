"""Documents are queried as the contract has it."""

from typing import Any

import pytest
from tests.gate.tools import over
from tests.packs.appdata.answers import RecordingStore, assert_answer, assert_failure
from tests.packs.appdata.seed_documents import JANE, condition, ids, problem_of

from toolgate.gate.errors import InvalidArguments
from toolgate.packs.appdata.tools.documents import Operator
from toolgate.ports.documents import Create, new_id
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


# query_collection


async def test_active_apps_are_queried(reading: Kit) -> None:
    found = await reading.call(
        "query_collection",
        collection="apps",
        filters=[condition("status", "==", "active")],
        limit=10,
    )
    assert_answer(
        found,
        {
            "collection": "apps",
            "count": 3,
            "limit": 10,
            "data": [
                {
                    "id": "hub",
                    "name": "CyberEco Hub",
                    "status": "active",
                    "category": "identity",
                },
                {
                    "id": "justsplit",
                    "name": "JustSplit",
                    "status": "active",
                    "category": "finance",
                },
                {
                    "id": "demos",
                    "name": "Demos",
                    "status": "active",
                    "category": "governance",
                },
            ],
        },
    )


async def test_users_who_have_access_to_an_app_are_queried(reading: Kit) -> None:
    found = await reading.call(
        "query_collection",
        collection="users",
        filters=[condition("apps", "array-contains", "justsplit")],
    )
    assert found.body["limit"] == 20
    assert found.body["count"] == len(found.body["data"])
    assert found.body["data"][0] == JANE
    assert [one["id"] for one in found.body["data"]] == [
        "abc123", "user-1", "user-2", "user-3", "user-4", "user-5", "user-6", "user-7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("==", 125.0, {"transaction-4"}),
        ("!=", 125, {f"transaction-{n}" for n in (1, 2, 3, 5, 6)}),
        ("<", 89.99, {"transaction-1"}),
        ("<=", 89.99, {"transaction-1", "transaction-3"}),
        (">", 266.66, {"transaction-5"}),
        (">=", 266.66, {"transaction-5", "transaction-6"}),
        ("in", [800, 85.5, "800"], {"transaction-1", "transaction-5"}),
    ],
)
async def test_every_operator_of_the_table_compares(
    reading: Kit, operator: str, value: Any, expected: set[str]
) -> None:
    assert {*await ids(reading, "transactions", condition("amount", operator, value))} == expected


async def test_the_table_of_operators_is_complete() -> None:
    assert [one.value for one in Operator] == [
        "==", "!=", "<", "<=", ">", ">=", "in", "array-contains",
    ]  # fmt: skip


@pytest.mark.parametrize("operator", ["X", "===", "", "not-in", "array-contains-any", "IN", "$ne"])
async def test_an_operator_off_the_list_is_invalid(reading: Kit, operator: str) -> None:
    refused = await reading.call(
        "query_collection", collection="apps", filters=[condition("status", operator, "active")]
    )
    assert_failure(refused, InvalidArguments, {"error": f"Invalid operator: '{operator}'"})


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        ("X", "X"),
        ("not-in", "not-in"),
        (None, "null"),
        (5, "5"),
        (True, "true"),
        (["=="], '["=="]'),
        ({"==": 1}, '{"==": 1}'),
        ("\ud800", "\\ud800"),
        ("x" * 5000, "x" * 199 + "…"),
    ],
)
async def test_an_invalid_operator_never_reaches_the_store(
    reading: Kit, operator: Any, shown: str
) -> None:
    store = RecordingStore()
    refused = await over(reading, store).call(
        "query_collection", collection="apps", filters=[condition("status", operator, "active")]
    )
    assert problem_of(refused) == f"Invalid operator: '{shown}'"
    assert store.calls == []


async def test_a_good_query_reaches_the_store_once(reading: Kit) -> None:
    store = RecordingStore()
    filters = [condition("status", "==", "active")]
    await over(reading, store).call("query_collection", collection="apps", filters=filters)
    assert store.calls == ["query apps limit 20"]


@pytest.mark.parametrize(
    ("given", "applied"),
    [(1, 1), (20, 20), (20.0, 20), (100, 100), (101, 100), (2**63, 100), (10**40, 100)],
)
async def test_a_limit_is_applied_up_to_the_cap(reading: Kit, given: Any, applied: int) -> None:
    store = RecordingStore()
    found = await over(reading, store).call("query_collection", collection="apps", limit=given)
    assert found.body == {"collection": "apps", "count": 0, "limit": applied, "data": []}
    assert store.calls == [f"query apps limit {applied}"]


async def test_the_limit_is_twenty_unless_given(writing: Kit) -> None:
    for n in range(25):
        await writing.call("create_document", collection="groups", data={"name": str(n)})
    found = await writing.call("query_collection", collection="groups")
    assert (found.body["limit"], found.body["count"], len(found.body["data"])) == (20, 20, 20)
    more = await writing.call("query_collection", collection="groups", limit=27)
    assert more.body["count"] == 27
    assert more.body["data"][:20] == found.body["data"], "the order is always the same"


async def test_no_query_answers_more_than_a_hundred(writing: Kit) -> None:
    async with writing.app.gate.database.transaction() as tx:
        new = [Create("groups", new_id(), {"n": n}) for n in range(120)]
        await writing.app.documents.of("appdata").write(tx, *new)
    found = await writing.call("query_collection", collection="groups", limit=1000)
    assert (found.body["limit"], found.body["count"]) == (100, 100)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (0, "limit must be at least 1"),
        (-1, "limit must be at least 1"),
        (True, "limit must be an integer"),
        ("20", "limit must be an integer"),
        (20.5, "limit must be an integer"),
        (float("inf"), "limit must be an integer"),
        (float("nan"), "limit must be an integer"),
        ([20], "limit must be an integer"),
    ],
)
async def test_a_limit_that_is_none_is_refused(reading: Kit, given: Any, problem: str) -> None:
    store = RecordingStore()
    refused = await over(reading, store).call("query_collection", collection="apps", limit=given)
    assert problem_of(refused) == problem
    assert store.calls == []


@pytest.mark.parametrize("missing", ["field", "operator", "value"])
async def test_a_filter_needs_all_three_keys(reading: Kit, missing: str) -> None:
    given = condition("status", "==", "active")
    del given[missing]
    refused = await reading.call("query_collection", collection="apps", filters=[given])
    assert problem_of(refused) == f"filters[0].{missing} is required"


async def test_a_filter_takes_no_other_keys(reading: Kit) -> None:
    given = {**condition("status", "==", "active"), "op": "=="}
    refused = await reading.call("query_collection", collection="apps", filters=[given])
    assert problem_of(refused) == (
        "Unknown argument 'filters[0].op'. Valid arguments of filters[0]: field, operator, value."
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "filters must be a list"),
        ("status == active", "filters must be a list"),
        (["status"], "filters[0] must be an object"),
        ([None], "filters[0] must be an object"),
        ([[]], "filters[0] must be an object"),
    ],
)
async def test_filters_are_a_list_of_objects(reading: Kit, given: Any, problem: str) -> None:
    refused = await reading.call("query_collection", collection="apps", filters=given)
    assert problem_of(refused) == problem


@pytest.mark.parametrize("given", [None, []])
async def test_no_filters_means_every_document(reading: Kit, given: Any) -> None:
    found = await reading.call("query_collection", collection="apps", filters=given)
    assert found.body["count"] == 9


async def test_more_than_thirty_filters_are_refused(reading: Kit) -> None:
    given = [condition("status", "==", "active")] * 31
    refused = await reading.call("query_collection", collection="apps", filters=given)
    assert problem_of(refused) == "filters must have at most 30 items"
    assert await ids(reading, "apps", *given[:30]) == ["hub", "justsplit", "demos"]


@pytest.mark.parametrize("value", ["active", None, 5, {"a": 1}, [], ["x"] * 31])
async def test_in_takes_a_list_of_one_to_thirty(reading: Kit, value: Any) -> None:
    refused = await reading.call(
        "query_collection", collection="apps", filters=[condition("status", "in", value)]
    )
    assert problem_of(refused) == (
        "filters[0].value must be a list of 1 to 30 values for operator 'in'"
    )


async def test_in_takes_thirty_values(reading: Kit) -> None:
    values = ["active", *(f"x{n}" for n in range(29))]
    assert await ids(reading, "apps", condition("status", "in", values)) == [
        "hub", "justsplit", "demos",
    ]  # fmt: skip


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
async def test_null_has_no_order(reading: Kit, operator: str) -> None:
    refused = await reading.call(
        "query_collection", collection="apps", filters=[condition("status", operator, None)]
    )
    assert problem_of(refused) == f"filters[0].value must not be null for operator '{operator}'"


async def test_null_equals_null_only(writing: Kit) -> None:
    for name, value in (("null", None), ("zero", 0), ("empty", ""), ("no", False)):
        await writing.call(
            "create_document", collection="groups", document_id=name, data={"value": value}
        )
    assert await ids(writing, "groups", condition("value", "==", None)) == ["null"]
    assert await ids(writing, "groups", condition("value", "!=", None)) == ["no", "zero", "empty"]


async def test_values_match_only_values_of_their_own_type(writing: Kit) -> None:
    for name, value in (("int", 1), ("float", 1.0), ("true", True), ("text", "1")):
        await writing.call(
            "create_document", collection="groups", document_id=name, data={"value": value}
        )
    assert await ids(writing, "groups", condition("value", "==", 1)) == ["int", "float"]
    assert await ids(writing, "groups", condition("value", "==", True)) == ["true"]
    assert await ids(writing, "groups", condition("value", "==", "1")) == ["text"]
    assert await ids(writing, "groups", condition("value", "<=", 1)) == ["float", "int"]


async def test_a_dotted_path_reaches_into_maps(reading: Kit) -> None:
    private = condition("settings.isPrivate", "==", True)
    assert await ids(reading, "groups", private) == ["lake-weekend", "roommates"]
    assert await ids(reading, "groups", condition("settings.nothing.there", "==", True)) == []


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("", "filters[0].field is required"),
        (".", "filters[0].field must be a field name, or names joined by single dots"),
        ("a..b", "filters[0].field must be a field name, or names joined by single dots"),
        (".a", "filters[0].field must be a field name, or names joined by single dots"),
        ("a.", "filters[0].field must be a field name, or names joined by single dots"),
        ("a\0b", "filters[0].field must not contain a NUL character"),
        ("__name__", "filters[0].field must not begin and end with '__'"),
        ("x" * 1501, "filters[0].field must have at most 1500 bytes"),
        (5, "filters[0].field must be a string"),
        (None, "filters[0].field must be a string"),
    ],
)
async def test_a_field_is_a_dotted_path(reading: Kit, field: Any, problem: str) -> None:
    refused = await reading.call(
        "query_collection", collection="apps", filters=[condition(field, "==", 1)]
    )
    assert problem_of(refused) == problem


@pytest.mark.parametrize(
    "field", ["status' OR '1'='1", 'status"', "status; DROP TABLE documents", "$.status", "a[0]"]
)
async def test_a_field_name_is_never_code(reading: Kit, field: str) -> None:
    assert await ids(reading, "apps", condition(field, "==", "active")) == []
    assert len(await ids(reading, "apps")) == 9


async def test_a_filter_value_keeps_the_rules_of_documents(reading: Kit) -> None:
    for value, problem in (
        (2**64, "must hold only integers of at most 64 bits"),
        ("a\0b", "must not contain a NUL character"),
        (float("nan"), "must hold only finite numbers"),
    ):
        refused = await reading.call(
            "query_collection", collection="apps", filters=[condition("status", "==", value)]
        )
        assert problem_of(refused) == f"filters[0].value {problem}"
