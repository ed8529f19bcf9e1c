"""A team's own file of collections takes the place of the built-in one, everywhere."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.packs.appdata.answers import assert_failure
from tests.transports.conftest import opened_web
from tests.transports.mcp_requests import MODERN, request

from toolgate import demo
from toolgate.gate.errors import InvalidArguments, NotFound
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

OWN = """
[collections.orders]
description = "What customers ordered"
document_type = "Order"
owner = "Shop"
writable = true

[collections.orders.fields]
id = { type = "string", description = "Order number", required = true }
total = { type = "number", description = "In cents", required = true }
note = { type = "string", description = "Of the customer" }

[collections."price list"]
description = "Prices, by product"
"""


def own_file(folder: Path) -> Path:
    file = folder / "collections.toml"
    file.write_text(OWN, encoding="utf-8")
    return file


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Kit]:
    file = own_file(tmp_path)
    async with opened_kit(tmp_path, writes=True, appdata__collections=file) as kit:
        yield kit


async def test_the_schema_tools_answer_from_the_file(shop: Kit) -> None:
    listed = await shop.call("list_collections")
    assert listed.body["collections"] == [
        {
            "name": "orders",
            "description": "What customers ordered",
            "document_type": "Order",
            "owner": "Shop",
            "field_count": 3,
        },
        {
            "name": "price list",
            "description": "Prices, by product",
            "document_type": "Document",
            "owner": "Application",
            "field_count": 0,
        },
    ]
    described = await shop.call("describe_collection", collection_name="orders")
    assert described.body["fields"] == {
        "id": {"type": "string", "description": "Order number (required)"},
        "total": {"type": "number", "description": "In cents (required)"},
        "note": {"type": "string", "description": "Of the customer"},
    }
    unknown = await shop.call("describe_collection", collection_name="users")
    told = {
        "error": "Collection 'users' not found",
        "available_collections": ["orders", "price list"],
    }
    assert_failure(unknown, NotFound, told)


async def test_documents_of_the_files_collections_are_served(shop: Kit) -> None:
    data = {"total": 1250}
    made = await shop.call("create_document", collection="orders", document_id="o1", data=data)
    assert made.body == {"id": "o1", "success": True}
    read = await shop.call("get_document", collection="orders", document_id="o1")
    assert read.body == {"id": "o1", "total": 1250}
    found = await shop.call("query_collection", collection="price list")
    assert found.body["data"] == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_document", {"document_id": "a"}),
        ("query_collection", {}),
        ("create_document", {"data": {"a": 1}}),
    ],
)
async def test_a_built_in_collection_that_the_file_lacks_is_not_allowed(
    shop: Kit, tool: str, arguments: dict[str, Any]
) -> None:
    refused = await shop.send(tool, {"collection": "users", **arguments})
    assert isinstance(refused.error, InvalidArguments)
    assert refused.body["error"] == "Collection 'users' is not allowed"


async def test_a_collection_that_is_not_writable_refuses_and_names_those_that_are(
    shop: Kit,
) -> None:
    refused = await shop.call("create_document", collection="price list", data={"a": 1})
    told = "Collection 'price list' is read-only (writable collections: orders)"
    assert_failure(refused, InvalidArguments, {"error": told, "success": False})
    assert (await shop.call("query_collection", collection="price list")).body["count"] == 0
    [row] = [row for row in await shop.audit_rows() if row["tool_name"] == "create_document"]
    assert row["error_type"] == InvalidArguments.kind


async def test_a_document_without_a_required_field_is_refused(shop: Kit) -> None:
    refused = await shop.call("create_document", collection="orders", data={"note": "soon"})
    told = "data must have 'total' (required in orders)"
    assert_failure(refused, InvalidArguments, {"error": told, "success": False})
    assert (await shop.call("query_collection", collection="orders")).body["count"] == 0


@pytest.mark.parametrize("tool", ["check_permission", "list_user_permissions"])
async def test_permissions_are_not_read_from_users_that_the_file_does_not_have(
    shop: Kit, tool: str
) -> None:
    arguments = {"user_id": "abc123"} | ({"app_id": "hub"} if tool == "check_permission" else {})
    refused = await shop.send(tool, arguments)
    assert isinstance(refused.error, NotFound)
    assert refused.body == {
        "error": "Permissions are read from collection 'users', which this server does not have",
        "available_collections": ["orders", "price list"],
    }


async def test_null_is_no_value_of_a_required_field_unless_its_type_names_it(
    tmp_path: Path,
) -> None:
    file = own_file(tmp_path)
    due = 'due = { type = "string | null", required = true }\n'
    file.write_text(OWN.replace("note = ", f"{due}note = "), encoding="utf-8")
    async with opened_kit(tmp_path, writes=True, appdata__collections=file) as kit:
        nulls = {"total": None, "due": None, "note": None}
        refused = await kit.call("create_document", collection="orders", data=nulls)
        told = "data must have a value for 'total', not null (required in orders)"
        assert_failure(refused, InvalidArguments, {"error": told, "success": False})
        made = await kit.call("create_document", collection="orders", data=nulls | {"total": 0})
        assert made.body["success"]


async def test_demo_documents_are_not_loaded_and_it_is_said(shop: Kit) -> None:
    with pytest.raises(demo.NotForDemo, match=r"appdata\.collections names your own file"):
        await demo.load_demo(shop.app)
    assert await shop.app.documents.of("appdata").collections() == []


async def test_resources_and_prompts_follow_the_file_over_mcp(tmp_path: Path) -> None:
    given = {"demo_data": False, "appdata__collections": own_file(tmp_path)}
    async with opened_web(tmp_path, **given) as web, web.client("admin") as client:

        async def ask(method: str, **params: Any) -> Any:
            return (await request(MODERN, method, params).send(client)).json()["result"]

        resources = (await ask("resources/list"))["resources"]
        ours = [one["uri"] for one in resources if one["uri"].startswith("cybereco://")]
        read = await ask("resources/read", uri="cybereco://schema/price%20list")
        prompts = {one["name"] for one in (await ask("prompts/list"))["prompts"]}
        goal = {"collection": "orders", "goal": "large ones"}
        designed = await ask("prompts/get", name="design_query", arguments=goal)
        explored = await ask("prompts/get", name="explore_data_model", arguments={})
    assert [one for one in ours if "schema/" in one or one.endswith("collections")] == [
        "cybereco://collections",
        "cybereco://schema/orders",
        "cybereco://schema/price%20list",
    ]
    assert '"collection":"price list"' in read["contents"][0]["text"]
    assert prompts & {"integrate_new_app", "debug_permissions"} == set()
    assert "`total` (number): In cents (required)" in designed["messages"][0]["content"]["text"]
    text = explored["messages"][0]["content"]["text"]
    assert "There are 2 collections:" in text
    assert "`users`" not in text
