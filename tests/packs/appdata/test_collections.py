"""The data model is the one the pack promises."""

import dataclasses

import pytest

from toolgate.packs.appdata.collections import BUILT_IN, Collection

BY_NAME, COLLECTIONS = BUILT_IN.by_name, BUILT_IN.every
every_collection = pytest.mark.parametrize("collection", COLLECTIONS, ids=list(BY_NAME))


def test_the_twelve_collections_stand_in_their_order() -> None:
    assert [(c.name, c.document_type, c.owner, c.description) for c in COLLECTIONS] == [
        (
            "users",
            "HubUser / SharedUserProfile",
            "Hub",
            "Central user records for the CyberEco ecosystem",
        ),
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


def test_each_collection_is_found_by_its_name() -> None:
    assert list(BY_NAME.values()) == list(COLLECTIONS)
    assert all(BY_NAME[name].name == name for name in BY_NAME)


@pytest.mark.parametrize(("name", "count"), [("users", 10), ("transactions", 10), ("groups", 6)])
def test_the_promised_field_counts_hold(name: str, count: int) -> None:
    assert len(BY_NAME[name].fields) == count


def test_the_promised_fields_of_users_are_worded_as_promised() -> None:
    described = {f.name: (f.type, f.description) for f in BY_NAME["users"].fields}
    promised = {
        "id": ("string", "User ID (matches Firebase Auth UID)"),
        "email": ("string", "User email address"),
        "displayName": ("string", "User display name"),
        "apps": ("string[]", "List of app IDs user has access to"),
        "isAdmin": ("boolean", "Global admin flag"),
    }
    assert described.items() >= promised.items()
    assert [name for name in described if name in promised] == list(promised)


@every_collection
def test_every_field_has_one_name_a_type_and_a_description(collection: Collection) -> None:
    names = [field.name for field in collection.fields]
    assert len(names) == len(set(names))
    assert names[0] == "id"
    for field in collection.fields:
        assert field.type
        assert field.description == field.description.strip() != ""


@every_collection
def test_times_say_how_they_are_written(collection: Collection) -> None:
    for field in collection.fields:
        if field.name.endswith("At") or field.name in {"date", "timestamp"}:
            assert field.type == "string"
            assert "ISO 8601" in field.description


def test_a_collection_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        COLLECTIONS[0].name = "other"  # pyright: ignore[reportAttributeAccessIssue]
