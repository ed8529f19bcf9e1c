"""The data tools answer as their documentation prints it, and hold in its gaps."""

from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import over
from tests.packs.appdata.answers import (
    NOT_ANSWERING,
    FailingStore,
    RecordingStore,
    assert_answer,
    assert_failure,
)

from toolgate import demo
from toolgate.db.tables import documents
from toolgate.demo import NotForDemo
from toolgate.gate.errors import (
    Conflict,
    Forbidden,
    InvalidArguments,
    NotFound,
    Unavailable,
)
from toolgate.packs.appdata.demo import DEMO
from toolgate.ports.documents import Operator
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

JANE = {
    "id": "abc123",
    "email": "jane@example.com",
    "displayName": "Jane Doe",
    "apps": ["hub", "justsplit"],
    "isAdmin": False,
    "createdAt": "2025-01-15T10:30:00Z",
}
NOTIFICATION = {
    "userId": "abc123",
    "type": "info",
    "title": "Welcome to CyberEco",
    "message": "Your account has been set up successfully.",
    "read": False,
    "appId": "hub",
    "createdAt": "2025-06-01T12:00:00Z",
}
NEW_APP = {
    "name": "My New App",
    "description": "A CyberEco ecosystem application",
    "status": "beta",
    "category": "community",
}
WRITES_DISABLED = {
    "error": "Write operations are disabled. Set MCP_ENABLE_WRITES=true to enable.",
    "success": False,
}


def condition(field: Any, operator: Any, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


async def ids(kit: Kit, collection: str, *filters: Any, limit: int = 100) -> list[str]:
    found = await kit.call(
        "query_collection", collection=collection, filters=list(filters), limit=limit
    )
    assert found.error is None, found.body
    return [one["id"] for one in found.body["data"]]


def problem_of(outcome: Any) -> str:
    assert isinstance(outcome.error, InvalidArguments), outcome.body
    return outcome.body["error"]


# get_document


async def test_a_user_record_is_fetched(reading: Kit) -> None:
    fetched = await reading.call("get_document", collection="users", document_id="abc123")
    assert_answer(fetched, JANE)
    assert list(fetched.body) == ["id", "email", "displayName", "apps", "isAdmin", "createdAt"]


async def test_a_document_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as empty:
        missing = await empty.call("get_document", collection="users", document_id="abc123")
    assert_failure(missing, NotFound, {"error": "Document abc123 not found in users"})
    assert missing.status == 404


async def test_a_document_of_another_collection_is_not_found(reading: Kit) -> None:
    missing = await reading.call("get_document", collection="apps", document_id="abc123")
    assert_failure(missing, NotFound, {"error": "Document abc123 not found in apps"})


async def test_a_collection_off_the_list_is_not_allowed(reading: Kit) -> None:
    for name in ("X", "", "Users", "users ", "users/abc123/permissions", "__users__", "audit"):
        for tool, more in (
            ("get_document", {"document_id": "hub"}),
            ("query_collection", {}),
        ):
            refused = await reading.call(tool, collection=name, **more)
            told = {"error": f"Collection '{name}' is not allowed"}
            assert_failure(refused, InvalidArguments, told)


async def test_a_wild_collection_name_is_told_back_short_and_readable(reading: Kit) -> None:
    for name, shown in (("a\ud800", "a\\ud800"), ("é" * 5000, "é" * 199 + "…")):
        refused = await reading.call("query_collection", collection=name)
        assert problem_of(refused) == f"Collection '{shown}' is not allowed"


async def test_the_entries_below_a_record_are_out_of_reach(reading: Kit) -> None:
    reached = await reading.call(
        "get_document", collection="users", document_id="abc123/permissions/hub"
    )
    assert problem_of(reached) == "document_id must not contain '/' or a NUL character"


async def test_an_empty_document_id_is_required(reading: Kit) -> None:
    refused = await reading.call("get_document", collection="users", document_id="")
    assert_failure(refused, InvalidArguments, {"error": "document_id is required"})


async def test_a_missing_document_id_is_required(reading: Kit) -> None:
    refused = await reading.call("get_document", collection="users")
    assert_failure(refused, InvalidArguments, {"error": "document_id is required"})


@pytest.mark.parametrize("given", [None, 5, True, ["abc123"], {"id": "abc123"}])
async def test_a_document_id_is_a_string(reading: Kit, given: Any) -> None:
    refused = await reading.call("get_document", collection="users", document_id=given)
    assert problem_of(refused) == "document_id must be a string"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a/b", "document_id must not contain '/' or a NUL character"),
        ("a\0b", "document_id must not contain '/' or a NUL character"),
        (".", "document_id must not be '.' or '..'"),
        ("..", "document_id must not be '.' or '..'"),
        ("__id__", "document_id must not begin and end with '__'"),
        ("x" * 1501, "document_id must have at most 1500 bytes"),
        ("é" * 751, "document_id must have at most 1500 bytes"),
    ],
)
async def test_an_id_that_no_store_takes_is_refused(reading: Kit, given: str, problem: str) -> None:
    refused = await reading.call("get_document", collection="users", document_id=given)
    assert problem_of(refused) == problem


async def test_every_problem_is_told_at_once(reading: Kit) -> None:
    refused = await reading.call("get_document", collection="X", document="abc123")
    assert problem_of(refused) == (
        "Collection 'X' is not allowed; document_id is required; Unknown argument 'document'. "
        "Did you mean 'document_id'? Valid arguments: collection, document_id."
    )


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
        for n in range(120):
            await writing.app.documents.of("appdata").create(tx, "groups", {"n": n}, None)
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
    assert await ids(writing, "groups", condition("value", "!=", None)) == ["zero", "empty", "no"]


async def test_values_match_only_values_of_their_own_type(writing: Kit) -> None:
    for name, value in (("int", 1), ("float", 1.0), ("true", True), ("text", "1")):
        await writing.call(
            "create_document", collection="groups", document_id=name, data={"value": value}
        )
    assert await ids(writing, "groups", condition("value", "==", 1)) == ["int", "float"]
    assert await ids(writing, "groups", condition("value", "==", True)) == ["true"]
    assert await ids(writing, "groups", condition("value", "==", "1")) == ["text"]
    assert await ids(writing, "groups", condition("value", "<=", 1)) == ["int", "float"]


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


# create_document


async def test_a_notification_is_created_with_an_id_of_its_own(writing: Kit) -> None:
    created = await writing.call("create_document", collection="notifications", data=NOTIFICATION)
    made = created.body["id"]
    assert_answer(created, {"id": made, "success": True})
    assert len(made) == 20
    assert made.isalnum()
    stored = await writing.call("get_document", collection="notifications", document_id=made)
    assert_answer(stored, {"id": made, **NOTIFICATION})


async def test_two_notifications_get_two_ids(writing: Kit) -> None:
    made = [
        await writing.call("create_document", collection="notifications", data=NOTIFICATION)
        for _ in range(2)
    ]
    assert made[0].body["id"] != made[1].body["id"]


async def test_an_app_is_created_with_a_specific_id(writing: Kit) -> None:
    created = await writing.call(
        "create_document", collection="apps", document_id="my-new-app", data=NEW_APP
    )
    assert_answer(created, {"id": "my-new-app", "success": True})
    stored = await writing.call("get_document", collection="apps", document_id="my-new-app")
    assert_answer(stored, {"id": "my-new-app", **NEW_APP})


async def test_writes_are_disabled_unless_switched_on(reading: Kit) -> None:
    refused = await reading.call("create_document", collection="notifications", data=NOTIFICATION)
    assert_failure(refused, Forbidden, WRITES_DISABLED)
    assert refused.status == 403
    assert len(await ids(reading, "notifications")) == 3


async def test_disabled_writes_are_told_before_the_arguments_are_read(reading: Kit) -> None:
    store = RecordingStore()
    refused = await over(reading, store).send("create_document", {"collection": "X"})
    assert_failure(refused, Forbidden, WRITES_DISABLED)
    assert store.calls == []


async def test_a_collection_off_the_list_is_not_allowed_for_writes(writing: Kit) -> None:
    refused = await writing.call("create_document", collection="X", data={})
    told = {"error": "Collection 'X' is not allowed", "success": False}
    assert_failure(refused, InvalidArguments, told)


async def test_an_existing_document_is_never_overwritten(writing: Kit) -> None:
    refused = await writing.call(
        "create_document", collection="users", document_id="abc123", data={"isAdmin": True}
    )
    assert_failure(
        refused,
        Conflict,
        {
            "error": "Document abc123 already exists in users. "
            "Choose another document_id, or leave it out to have one made.",
            "success": False,
        },
    )
    assert refused.status == 409
    stored = await writing.call("get_document", collection="users", document_id="abc123")
    assert_answer(stored, JANE)


async def test_an_id_inside_the_data_is_not_a_field(writing: Kit) -> None:
    data = {"id": "someone-else", "name": "Mine"}
    created = await writing.call(
        "create_document", collection="apps", document_id="mine", data=data
    )
    assert_answer(created, {"id": "mine", "success": True})
    stored = await writing.call("get_document", collection="apps", document_id="mine")
    assert_answer(stored, {"id": "mine", "name": "Mine"})
    other = await writing.call("get_document", collection="apps", document_id="someone-else")
    assert isinstance(other.error, NotFound)
    assert await ids(writing, "apps", condition("id", "==", "someone-else")) == []


async def test_an_empty_document_can_be_created(writing: Kit) -> None:
    created = await writing.call("create_document", collection="apps", document_id="e", data={})
    assert_answer(created, {"id": "e", "success": True})
    stored = await writing.call("get_document", collection="apps", document_id="e")
    assert_answer(stored, {"id": "e"})


@pytest.mark.parametrize("given", [None, [], ["a"], "{}", 5, True])
async def test_the_data_is_an_object(writing: Kit, given: Any) -> None:
    refused = await writing.call("create_document", collection="apps", data=given)
    told = {"error": "data must be an object", "success": False}
    assert_failure(refused, InvalidArguments, told)


async def test_the_data_is_required(writing: Kit) -> None:
    refused = await writing.call("create_document", collection="apps")
    told = {"error": "data is required", "success": False}
    assert_failure(refused, InvalidArguments, told)


async def test_an_empty_id_for_a_new_document_is_refused(writing: Kit) -> None:
    refused = await writing.call("create_document", collection="apps", document_id="", data={})
    told = {"error": "document_id is required", "success": False}
    assert_failure(refused, InvalidArguments, told)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = {"in": value}
    return value


UNSTORABLE = {
    "NUL in a text": ({"name": "a\0b"}, "must not contain a NUL character"),
    "NUL in a name": ({"a\0b": 1}, "must not contain a NUL character"),
    "a lone surrogate": ({"name": "\ud800"}, "must be valid Unicode text"),
    "a lone surrogate in a name": ({"\udfff": 1}, "must be valid Unicode text"),
    "21 levels": (nested(21), "must not be nested more than 20 levels deep"),
    "hundreds of levels": (nested(900), "must not be nested more than 20 levels deep"),
    "a 65-bit integer": ({"n": 2**64}, "must hold only integers of at most 64 bits"),
    "one above 64 bits": ({"n": 2**63}, "must hold only integers of at most 64 bits"),
    "one below 64 bits": ({"n": -(2**63) - 1}, "must hold only integers of at most 64 bits"),
    "not a number": ({"n": float("nan")}, "must hold only finite numbers"),
    "infinity": ({"n": float("-inf")}, "must hold only finite numbers"),
    "a list in a list": ({"a": [1, [2]]}, "must not hold a list directly inside a list"),
    "a list in a list below": (
        {"a": [{"b": [[1]]}]},
        "must not hold a list directly inside a list",
    ),
    "no name": ({"": 1}, "must not have a field without a name"),
    "a reserved name": (
        {"__proto__": 1},
        "must not have a field like '__proto__' that begins and ends with '__'",
    ),
    "a reserved name below": (
        {"a": [{"__name__": 1}]},
        "must not have a field like '__name__' that begins and ends with '__'",
    ),
    "more than 1 MiB": ({"a": "x" * 1_048_576}, "must have at most 1048576 bytes as JSON"),
}


@pytest.mark.parametrize("what", UNSTORABLE)
async def test_data_that_no_store_takes_is_refused(writing: Kit, what: str) -> None:
    data, problem = UNSTORABLE[what]
    refused = await writing.call("create_document", collection="apps", document_id="x", data=data)
    told = {"error": f"data {problem}", "success": False}
    assert_failure(refused, InvalidArguments, told)
    stored = await writing.call("get_document", collection="apps", document_id="x")
    assert isinstance(stored.error, NotFound), "nothing is stored"


STORABLE: dict[str, dict[str, Any]] = {
    "20 levels": nested(20),
    "64-bit integers": {"most": 2**63 - 1, "least": -(2**63)},
    "just 1 MiB": {"a": "x" * (1_048_576 - 8)},
    "a list in a map in a list": {"a": [{"b": [1]}]},
    "odd names": {"with space": 1, "a.b": 2, "__open": 3, "'quote\"": 4, "日本語": 5, "$": 6},
    "odd texts": {"a": "", "b": "😀 \u2028 \x01 \x7f", "c": "<script>", "d": "' OR 1=1 --"},
    "every kind of value": {"n": None, "t": True, "f": 1.5, "i": 0, "l": [], "m": {}, "s": "s"},
}


@pytest.mark.parametrize("what", STORABLE)
async def test_data_at_the_edge_of_the_rules_comes_back_as_it_was(writing: Kit, what: str) -> None:
    data = STORABLE[what]
    await writing.call("create_document", collection="apps", document_id="x", data=data)
    stored = await writing.call("get_document", collection="apps", document_id="x")
    assert stored.body == {"id": "x", **data}


# The store


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_document", {"collection": "users", "document_id": "abc123"}),
        ("query_collection", {"collection": "users"}),
        ("check_permission", {"user_id": "abc123", "app_id": "hub"}),
        ("list_user_permissions", {"user_id": "abc123"}),
    ],
)
async def test_a_store_that_does_not_answer_says_why(
    reading: Kit, tool: str, arguments: dict[str, Any]
) -> None:
    failed = await over(reading, FailingStore()).send(tool, arguments)
    assert_failure(failed, Unavailable, {"error": NOT_ANSWERING})
    assert failed.status == 503


async def test_a_write_to_a_store_that_does_not_answer_says_why(writing: Kit) -> None:
    failed = await over(writing, FailingStore()).call("create_document", collection="apps", data={})
    assert_failure(failed, Unavailable, {"error": NOT_ANSWERING, "success": False})


# Demo data


async def count(kit: Kit) -> int:
    of_this_pack = documents.select().where(documents.c.namespace == "appdata")
    return await kit.app.gate.database.read(
        lambda connection: len(connection.execute(of_this_pack).all())
    )


async def test_demo_data_is_loaded_once(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        assert (await demo.load_demo(kit.app))["appdata"] == len(DEMO)
        assert (await demo.load_demo(kit.app))["appdata"] == 0
        assert await count(kit) == len(DEMO)


async def test_demo_data_is_not_loaded_beside_documents_of_a_user(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        await kit.call("create_document", collection="apps", document_id="mine", data={"a": 1})
        with pytest.raises(NotForDemo, match="holds documents already"):
            await demo.load_demo(kit.app)
        assert await count(kit) == 1


async def test_a_users_version_of_a_demo_document_stays(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        changed = documents.update().where(
            documents.c.collection == "apps", documents.c.id == "hub"
        )
        await kit.app.gate.database.write(
            lambda connection: connection.execute(changed.values(fields={"name": "My Hub"}))
        )
        assert (await demo.load_demo(kit.app))["appdata"] == 0
        stored = await kit.call("get_document", collection="apps", document_id="hub")
    assert_answer(stored, {"id": "hub", "name": "My Hub"})


async def test_a_demo_document_that_was_removed_is_loaded_again(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        removed = documents.delete().where(documents.c.collection == "apps")
        await kit.app.gate.database.write(lambda connection: connection.execute(removed))
        assert (await demo.load_demo(kit.app))["appdata"] == 9
        assert (await demo.load_demo(kit.app))["appdata"] == 0
