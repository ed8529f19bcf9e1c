"""Documents are read and created as the contract has it."""

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
from tests.packs.appdata.seed_documents import (
    JANE,
    NEW_APP,
    NOTIFICATION,
    WRITES_DISABLED,
    condition,
    ids,
    problem_of,
)

from toolgate import demo
from toolgate.db.tables import documents
from toolgate.demo import NotForDemo
from toolgate.gate.errors import Conflict, Forbidden, InvalidArguments, NotFound, Unavailable
from toolgate.packs.appdata.demo import DEMO
from toolgate.ports.documents import Delete, Query, Set
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


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
        async with kit.app.gate.database.transaction() as tx:
            changed = Set("apps", "hub", {"name": "My Hub"})
            await kit.app.documents.of("appdata").write(tx, changed)
        assert (await demo.load_demo(kit.app))["appdata"] == 0
        stored = await kit.call("get_document", collection="apps", document_id="hub")
    assert_answer(stored, {"id": "hub", "name": "My Hub"})


async def test_a_demo_document_that_was_removed_is_loaded_again(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        store = kit.app.documents.of("appdata")
        async with kit.app.gate.database.transaction() as tx:
            removed = [Delete("apps", one.id) for one in await store.query(Query("apps"))]
            await store.write(tx, *removed)
        assert (await demo.load_demo(kit.app))["appdata"] == 9
        assert (await demo.load_demo(kit.app))["appdata"] == 0
