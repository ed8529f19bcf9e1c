"""The schema tools answer as their documentation prints it, without any store."""

from typing import Any

import pytest
from tests.gate.tools import over
from tests.packs.appdata.answers import FailingStore, assert_answer, assert_failure

from toolgate.gate.errors import InvalidArguments, NotFound
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

NAMES = [
    "users", "transactions", "groups", "notifications",
    "permissions", "resourcePermissions", "permissionLogs",
    "apps", "friendships", "webhookRegistrations",
    "userPreferences", "dataSyncStatus",
]  # fmt: skip
TABLE = [
    ("users", "HubUser / SharedUserProfile", "Hub", "Central user records"),
    ("transactions", "Transaction", "Hub", "Cross-app financial records"),
    ("groups", "SharedGroup", "Hub", "Cross-app group memberships"),
    ("notifications", "Notification", "Hub", "Cross-app notification queue"),
    ("permissions", "ResourcePermission", "Hub", "Fine-grained resource access"),
    (
        "resourcePermissions",
        "ResourcePermission",
        "Hub",
        "Resource-level permissions with compound key",
    ),
    ("permissionLogs", "PermissionChangeLog", "Hub", "Audit trail for permission changes"),
    ("apps", "App", "Hub", "App registry for the ecosystem"),
    ("friendships", "Friendship", "Shared", "Social connections between users"),
    ("webhookRegistrations", "WebhookRegistration", "Hub", "External webhook endpoints"),
    ("userPreferences", "UserPreferences", "Hub", "Extended user preferences"),
    ("dataSyncStatus", "DataSyncStatus", "Hub", "Per-user, per-app sync state"),
]


async def test_all_collections_are_listed(reading: Kit) -> None:
    listed = await reading.call("list_collections")
    assert list(listed.body) == ["collections"]
    assert [one["name"] for one in listed.body["collections"]] == NAMES
    assert len(NAMES) == 12


async def test_the_printed_entries_are_listed_first(reading: Kit) -> None:
    listed = await reading.call("list_collections")
    printed = [
        {
            "name": "users",
            "description": "Central user records for the CyberEco ecosystem",
            "document_type": "HubUser / SharedUserProfile",
            "owner": "Hub",
            "field_count": 10,
        },
        {
            "name": "transactions",
            "description": "Cross-app financial records",
            "document_type": "Transaction",
            "owner": "Hub",
            "field_count": 10,
        },
        {
            "name": "groups",
            "description": "Cross-app group memberships",
            "document_type": "SharedGroup",
            "owner": "Hub",
            "field_count": 6,
        },
    ]
    three = listed.body["collections"][:3]
    assert [list(one.items()) for one in three] == [list(one.items()) for one in printed]


async def test_the_table_of_collections_holds(reading: Kit) -> None:
    listed = await reading.call("list_collections")
    entries = {one["name"]: one for one in listed.body["collections"]}
    for name, document_type, owner, description in TABLE:
        assert entries[name]["document_type"] == document_type
        assert entries[name]["owner"] == owner
        assert entries[name]["description"].startswith(description)


async def test_the_users_collection_is_described(reading: Kit) -> None:
    described = await reading.call("describe_collection", collection_name="users")
    body = described.body
    assert list(body) == ["collection", "description", "document_type", "owner", "fields"]
    assert body["collection"] == "users"
    assert body["description"] == "Central user records for the CyberEco ecosystem"
    assert body["document_type"] == "HubUser / SharedUserProfile"
    assert body["owner"] == "Hub"
    printed = {
        "id": {"type": "string", "description": "User ID (matches Firebase Auth UID)"},
        "email": {"type": "string", "description": "User email address"},
        "displayName": {"type": "string", "description": "User display name"},
        "apps": {"type": "string[]", "description": "List of app IDs user has access to"},
        "isAdmin": {"type": "boolean", "description": "Global admin flag"},
    }
    assert [name for name in body["fields"] if name in printed] == list(printed)
    for name, field in printed.items():
        assert list(body["fields"][name].items()) == list(field.items())
    assert len(body["fields"]) == 10


@pytest.mark.parametrize("name", NAMES)
async def test_a_description_agrees_with_the_list(reading: Kit, name: str) -> None:
    listed = await reading.call("list_collections")
    entry = next(one for one in listed.body["collections"] if one["name"] == name)
    described = (await reading.call("describe_collection", collection_name=name)).body
    assert {
        "name": described["collection"],
        "description": described["description"],
        "document_type": described["document_type"],
        "owner": described["owner"],
        "field_count": len(described["fields"]),
    } == entry


@pytest.mark.parametrize("name", ["nonexistent", "Users", "users/abc123/permissions", "x" * 1500])
async def test_a_collection_that_is_not_there_is_answered_with_those_that_are(
    reading: Kit, name: str
) -> None:
    missing = await reading.call("describe_collection", collection_name=name)
    assert_failure(
        missing,
        NotFound,
        {"error": f"Collection '{name}' not found", "available_collections": NAMES},
    )


@pytest.mark.parametrize("arguments", [{}, {"collection_name": ""}])
async def test_the_collection_name_is_required(reading: Kit, arguments: dict[str, Any]) -> None:
    refused = await reading.send("describe_collection", arguments)
    assert_failure(refused, InvalidArguments, {"error": "collection_name is required"})


async def test_listing_takes_no_arguments(reading: Kit) -> None:
    refused = await reading.call("list_collections", limit=5)
    told = {"error": "Unknown argument 'limit'. This tool takes none."}
    assert_failure(refused, InvalidArguments, told)


async def test_the_schema_tools_work_without_a_store(reading: Kit) -> None:
    offline = over(reading, FailingStore())
    for tool, arguments in (
        ("list_collections", {}),
        ("describe_collection", {"collection_name": "users"}),
    ):
        assert_answer(
            await offline.send(tool, arguments), (await reading.send(tool, arguments)).body
        )
