"""The demo documents fit the data model and give the promised answers."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import cast

import pytest

from toolgate.packs.appdata.collections import BUILT_IN
from toolgate.packs.appdata.demo import DEMO
from toolgate.packs.appdata.tools.permissions import ROLE_LEVELS
from toolgate.ports.documents import MAX_ID_BYTES, Fields, Filter, Json, Operator
from toolgate.ports.filters import matches

NESTED = "users/abc123/permissions"

every_document = pytest.mark.parametrize(
    ("collection", "document_id", "fields"), DEMO, ids=[f"{c}/{i}" for c, i, _ in DEMO]
)


def documents(collection: str, *filters: Filter) -> dict[str, Fields]:
    return {i: fields for c, i, fields in DEMO if c == collection and matches(fields, filters)}


def exactly(value: Json) -> str:
    return json.dumps(value)


def test_every_collection_has_documents() -> None:
    assert {collection for collection, _, _ in DEMO} == {*BUILT_IN.by_name, NESTED}
    assert min(Counter(collection for collection, _, _ in DEMO).values()) > 1


def test_no_document_is_created_twice() -> None:
    assert max(Counter((collection, i) for collection, i, _ in DEMO).values()) == 1


@every_document
def test_an_id_is_valid(collection: str, document_id: str, fields: Fields) -> None:
    assert document_id.strip() == document_id != ""
    assert "/" not in document_id
    assert document_id not in {".", ".."}
    assert len(document_id.encode()) <= MAX_ID_BYTES
    assert "id" not in fields, f"the id of {collection}/{document_id} is stored twice"


@every_document
def test_only_declared_fields_are_used(collection: str, document_id: str, fields: Fields) -> None:
    if collection == NESTED:
        assert list(fields) == ["appId", "roles", "features"]
        assert fields["appId"] == document_id
    else:
        assert fields.keys() <= {field.name for field in BUILT_IN.by_name[collection].fields}
    assert json.loads(json.dumps(fields)) == fields


@every_document
def test_values_have_the_declared_type(collection: str, document_id: str, fields: Fields) -> None:
    if collection == NESTED:
        return
    python = {"string": str, "boolean": bool, "number": (int, float)}
    for field in BUILT_IN.by_name[collection].fields:
        if field.name in fields:
            wanted = list if field.type.endswith("[]") else python.get(field.type, dict)
            assert isinstance(fields[field.name], wanted), (document_id, field.name)


@every_document
def test_enumerated_values_are_among_the_declared(
    collection: str, document_id: str, fields: Fields
) -> None:
    if collection == NESTED:
        return
    for field in BUILT_IN.by_name[collection].fields:
        listed = re.search(r"(?:one|any) of: (.+)", field.description)
        if listed and field.name in fields:
            value = fields[field.name]
            values: list[str] = value if field.type.endswith("[]") else [value]
            assert set(values) <= set(listed[1].split(", ")), (document_id, field.name)


@every_document
def test_times_lie_in_2025(collection: str, document_id: str, fields: Fields) -> None:
    for name, value in fields.items():
        if name.endswith("At") or name in {"date", "timestamp"}:
            assert value.endswith("Z"), (collection, document_id, name)
            assert datetime.fromisoformat(value).year == 2025


@every_document
def test_users_and_apps_that_are_named_exist(
    collection: str, document_id: str, fields: Fields
) -> None:
    users, apps = documents("users"), documents("apps")
    for name in ("userId", "grantedBy", "createdBy", "requestedBy"):
        assert fields.get(name, "abc123") in users, (collection, document_id, name)
    assert {*fields.get("users", ())} <= users.keys()
    assert {member["userId"] for member in fields.get("members", ())} <= users.keys()
    assert fields.get("appId", "hub") in apps
    assert {*fields.get("apps", ())} <= apps.keys()


def test_jane_is_the_promised_user() -> None:
    assert exactly(documents("users")["abc123"]) == exactly(
        {
            "email": "jane@example.com",
            "displayName": "Jane Doe",
            "apps": ["hub", "justsplit"],
            "isAdmin": False,
            "createdAt": "2025-01-15T10:30:00Z",
        }
    )


def test_jane_has_the_promised_permissions() -> None:
    assert exactly(list(documents(NESTED).values())) == exactly(
        [
            {"appId": "hub", "roles": ["member"], "features": ["dashboard", "profile"]},
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
        ]
    )


def test_the_active_apps_are_the_promised_three() -> None:
    active = documents("apps", Filter("status", Operator.EQUAL, "active"))
    assert exactly(active) == exactly(
        {
            "hub": {"name": "CyberEco Hub", "status": "active", "category": "identity"},
            "justsplit": {"name": "JustSplit", "status": "active", "category": "finance"},
            "demos": {"name": "Demos", "status": "active", "category": "governance"},
        }
    )
    assert len(documents("apps")) > len(active)


def test_users_of_an_app_can_be_found() -> None:
    found = documents("users", Filter("apps", Operator.ARRAY_CONTAINS, "justsplit"))
    assert "abc123" in found
    assert "xyz789" not in found


def test_sam_is_refused_and_one_admin_exists() -> None:
    assert documents("users")["xyz789"]["apps"] == ["hub"]
    assert documents("users")["xyz789"]["isAdmin"] is False
    assert list(documents("users", Filter("isAdmin", Operator.EQUAL, True))) == ["hub-admin"]


def test_permissions_in_user_records_agree_with_their_apps() -> None:
    for user, fields in documents("users").items():
        entries = fields.get("permissions", [])
        if user != "abc123":
            assert [entry["appId"] for entry in entries] == fields["apps"]
        assert all(role in ROLE_LEVELS for entry in entries for role in entry["roles"])


def test_resource_permissions_have_the_compound_key() -> None:
    for document_id, fields in documents("resourcePermissions").items():
        key = (fields["userId"], fields["resourceType"], fields["resourceId"])
        assert document_id == "_".join(key)
        assert fields["resourceId"] in documents(f"{fields['resourceType']}s")


def test_the_demo_holds_no_secret() -> None:
    assert all("secret" not in fields for fields in documents("webhookRegistrations").values())


def test_no_two_documents_share_an_object() -> None:
    seen = [part for _, _, fields in DEMO for part in _identities(fields)]
    assert len(seen) == len(set(seen))


def _identities(value: Json) -> Iterator[int]:
    if isinstance(value, dict):
        inside = list(cast(Fields, value).values())
    elif isinstance(value, list):
        inside = cast("list[Json]", value)
    else:
        return
    yield id(cast(Json, value))
    for one in inside:
        yield from _identities(one)
