"""The permission tools answer as their documentation prints it, and hold in its gaps."""

from typing import Any

import pytest
from tests.gate.tools import over
from tests.packs.appdata.answers import RecordingStore, assert_answer, assert_failure

from toolgate.gate.errors import InvalidArguments, NotFound
from toolgate.packs.appdata.tools.permissions import ROLE_LEVELS
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

ROLES = ["owner", "admin", "moderator", "member"]


async def check(kit: Kit, user_id: str, app_id: str, **permission: str) -> dict[str, Any]:
    checked = await kit.call("check_permission", user_id=user_id, app_id=app_id, **permission)
    assert checked.error is None, checked.body
    return checked.body


async def add_user(kit: Kit, user_id: str, **fields: Any) -> None:
    created = await kit.call(
        "create_document", collection="users", document_id=user_id, data=fields
    )
    assert created.error is None, created.body


# check_permission: the printed examples


async def test_basic_app_access_is_granted(reading: Kit) -> None:
    checked = await reading.call("check_permission", user_id="abc123", app_id="justsplit")
    assert_answer(
        checked,
        {
            "user_id": "abc123",
            "app_id": "justsplit",
            "permission": "access",
            "granted": True,
            "roles": ["admin"],
            "features": ["dashboard", "export", "settings"],
        },
    )


async def test_the_admin_role_is_granted(reading: Kit) -> None:
    checked = await reading.call(
        "check_permission", user_id="abc123", app_id="justsplit", permission="admin"
    )
    assert_answer(
        checked,
        {
            "user_id": "abc123",
            "app_id": "justsplit",
            "permission": "admin",
            "granted": True,
            "user_roles": ["admin"],
            "reason": "Role check: requires 'admin' (level 3)",
        },
    )


async def test_a_feature_is_granted(reading: Kit) -> None:
    checked = await reading.call(
        "check_permission", user_id="abc123", app_id="justsplit", permission="export"
    )
    assert_answer(
        checked,
        {
            "user_id": "abc123",
            "app_id": "justsplit",
            "permission": "export",
            "granted": True,
            "available_features": ["dashboard", "export", "settings"],
            "reason": "Feature check: 'export' found in user features",
        },
    )


async def test_access_is_denied(reading: Kit) -> None:
    checked = await reading.call("check_permission", user_id="xyz789", app_id="justsplit")
    assert_answer(
        checked,
        {
            "user_id": "xyz789",
            "app_id": "justsplit",
            "permission": "access",
            "granted": False,
            "reason": "User does not have access to app 'justsplit'",
        },
    )


# check_permission: the order of evaluation


async def test_first_the_user_must_exist(reading: Kit) -> None:
    checked = await reading.call("check_permission", user_id="nobody", app_id="justsplit")
    assert_answer(
        checked,
        {
            "user_id": "nobody",
            "app_id": "justsplit",
            "permission": "access",
            "granted": False,
            "reason": "User 'nobody' not found",
        },
    )


@pytest.mark.parametrize("permission", ["access", *ROLES, "export", "anything at all"])
@pytest.mark.parametrize("app_id", ["hub", "justsplit", "no-such-app"])
async def test_second_a_global_admin_has_every_permission(
    reading: Kit, app_id: str, permission: str
) -> None:
    checked = await check(reading, "hub-admin", app_id, permission=permission)
    assert checked == {
        "user_id": "hub-admin",
        "app_id": app_id,
        "permission": permission,
        "granted": True,
        "reason": "User is a global admin",
    }


@pytest.mark.parametrize("flag", ["true", 1, "yes", [True], {"a": 1}])
async def test_only_true_makes_a_global_admin(writing: Kit, flag: Any) -> None:
    await add_user(writing, "almost", isAdmin=flag, apps=["hub"])
    checked = await check(writing, "almost", "justsplit")
    assert checked["granted"] is False


@pytest.mark.parametrize("permission", ["access", "member", "export"])
async def test_third_the_app_must_be_among_the_users_apps(writing: Kit, permission: str) -> None:
    entry = {"appId": "justsplit", "roles": ["owner"], "features": ["export"]}
    await add_user(writing, "stranger", apps=["hub"], permissions=[entry])
    checked = await check(writing, "stranger", "justsplit", permission=permission)
    assert checked["granted"] is False
    assert checked["reason"] == "User does not have access to app 'justsplit'"


async def test_fourth_without_an_entry_there_is_access_but_no_role_and_no_feature(
    writing: Kit,
) -> None:
    await add_user(writing, "guest", apps=["hub", "justsplit"])
    access = await check(writing, "guest", "justsplit")
    assert (access["granted"], access["roles"], access["features"]) == (True, [], [])
    role = await check(writing, "guest", "justsplit", permission="member")
    assert (role["granted"], role["user_roles"]) == (False, [])
    assert role["reason"] == "Role check: requires 'member' (level 1)"
    feature = await check(writing, "guest", "justsplit", permission="export")
    assert (feature["granted"], feature["available_features"]) == (False, [])
    assert feature["reason"] == "Feature check: 'export' not found in user features"


async def test_only_the_entry_of_the_app_counts(reading: Kit) -> None:
    assert (await check(reading, "abc123", "hub", permission="admin"))["granted"] is False
    assert (await check(reading, "abc123", "hub", permission="export"))["granted"] is False
    assert (await check(reading, "abc123", "demos", permission="moderator"))["granted"] is True
    assert (await check(reading, "abc123", "demos", permission="admin"))["granted"] is False


@pytest.mark.parametrize("wanted", ROLES)
@pytest.mark.parametrize("held", ROLES)
async def test_fifth_a_higher_role_satisfies_a_lower(writing: Kit, held: str, wanted: str) -> None:
    entry = {"appId": "hub", "roles": [held], "features": []}
    await add_user(writing, "someone", apps=["hub"], permissions=[entry])
    checked = await check(writing, "someone", "hub", permission=wanted)
    levels = {"owner": 4, "admin": 3, "moderator": 2, "member": 1}
    assert checked["granted"] is (levels[held] >= levels[wanted])
    assert checked["user_roles"] == [held]
    assert checked["reason"] == f"Role check: requires '{wanted}' (level {levels[wanted]})"


async def test_the_levels_are_the_printed_ones() -> None:
    assert ROLE_LEVELS == {"owner": 4, "admin": 3, "moderator": 2, "member": 1}


@pytest.mark.parametrize(
    ("held", "granted"),
    [
        (["member", "admin"], {"admin", "moderator", "member"}),
        (["admin", "member"], {"admin", "moderator", "member"}),
        (["moderator", "member"], {"moderator", "member"}),
        (["reader", "owner"], {"owner", "admin", "moderator", "member"}),
        (["reader", "Admin", "root"], set[str]()),
        ([], set[str]()),
        ("owner", set[str]()),
        (None, set[str]()),
        ([4, None, {"name": "owner"}], set[str]()),
    ],
)
async def test_of_several_roles_the_highest_counts(
    writing: Kit, held: Any, granted: set[str]
) -> None:
    entry = {"appId": "hub", "roles": held, "features": []}
    await add_user(writing, "someone", apps=["hub"], permissions=[entry])
    passed = {
        role
        for role in ROLES
        if (await check(writing, "someone", "hub", permission=role))["granted"]
    }
    assert passed == granted


async def test_a_feature_is_compared_letter_for_letter(reading: Kit) -> None:
    for permission in ("Export", "export ", "exp", "Access"):
        checked = await check(reading, "abc123", "justsplit", permission=permission)
        assert checked["granted"] is False
        assert checked["reason"] == f"Feature check: '{permission}' not found in user features"


async def test_a_feature_named_like_a_role_is_a_role_check(writing: Kit) -> None:
    entry = {"appId": "hub", "roles": ["member"], "features": ["admin", "access"]}
    await add_user(writing, "sly", apps=["hub"], permissions=[entry])
    assert (await check(writing, "sly", "hub", permission="admin"))["granted"] is False


async def test_records_of_any_shape_give_no_permission_and_no_error(writing: Kit) -> None:
    for name, fields in {
        "no-fields": {},
        "odd-apps": {"apps": "hub"},
        "odd-entries": {"apps": ["justsplit"], "permissions": {"hub": ["owner"]}},
        "odd-entry": {"apps": [1, None], "permissions": ["owner", None, 5, {}, {"appId": 5}]},
    }.items():
        await add_user(writing, name, **fields)
        assert (await check(writing, name, "hub"))["granted"] is False
        listed = await writing.call("list_user_permissions", user_id=name)
        assert listed.error is None


# Arguments


@pytest.mark.parametrize("given", ["", 5])
async def test_a_permission_that_is_none_is_refused(reading: Kit, given: Any) -> None:
    refused = await reading.call(
        "check_permission", user_id="abc123", app_id="hub", permission=given
    )
    assert isinstance(refused.error, InvalidArguments)
    assert refused.body["error"].startswith("permission ")


async def test_both_ids_are_required(reading: Kit) -> None:
    refused = await reading.call("check_permission")
    told = {"error": "user_id is required; app_id is required"}
    assert_failure(refused, InvalidArguments, told)


@pytest.mark.parametrize("tool", ["check_permission", "list_user_permissions"])
@pytest.mark.parametrize("user_id", ["abc123/permissions/hub", "a\0b", "..", "__all__", "é" * 751])
async def test_a_user_id_that_no_store_takes_never_reaches_it(
    reading: Kit, tool: str, user_id: str
) -> None:
    store = RecordingStore()
    arguments = {"user_id": user_id} | ({"app_id": "hub"} if tool == "check_permission" else {})
    refused = await over(reading, store).send(tool, arguments)
    assert isinstance(refused.error, InvalidArguments)
    assert refused.body["error"].startswith("user_id must ")
    assert store.calls == []


# list_user_permissions


async def test_all_permissions_are_listed(reading: Kit) -> None:
    listed = await reading.call("list_user_permissions", user_id="abc123")
    assert_answer(
        listed,
        {
            "user_id": "abc123",
            "is_admin": False,
            "apps": ["hub", "justsplit", "demos"],
            "permissions": [
                {
                    "appId": "hub",
                    "roles": ["member"],
                    "features": ["dashboard", "profile"],
                },
                {
                    "appId": "justsplit",
                    "roles": ["admin"],
                    "features": ["dashboard", "export", "settings"],
                },
                {
                    "appId": "demos",
                    "roles": ["moderator"],
                    "features": ["dashboard", "proposals", "voting"],
                },
            ],
        },
    )


async def test_permissions_inside_the_record_are_listed_alike(reading: Kit) -> None:
    listed = await reading.call("list_user_permissions", user_id="user-8")
    assert_answer(
        listed,
        {
            "user_id": "user-8",
            "is_admin": False,
            "apps": ["hub", "demos"],
            "permissions": [
                {"appId": "hub", "roles": ["member"], "features": ["dashboard", "profile"]},
                {
                    "appId": "demos",
                    "roles": ["admin"],
                    "features": ["proposal-creation", "voting", "community-moderation"],
                },
            ],
        },
    )


async def test_a_global_admin_is_listed_as_one(reading: Kit) -> None:
    listed = await reading.call("list_user_permissions", user_id="hub-admin")
    assert listed.body["is_admin"] is True


async def test_permissions_of_nobody_are_not_found(reading: Kit) -> None:
    missing = await reading.call("list_user_permissions", user_id="nobody")
    assert_failure(missing, NotFound, {"error": "Document nobody not found in users"})


async def test_the_user_id_is_required(reading: Kit) -> None:
    for arguments in ({}, {"user_id": ""}):
        refused = await reading.send("list_user_permissions", arguments)
        assert_failure(refused, InvalidArguments, {"error": "user_id is required"})
