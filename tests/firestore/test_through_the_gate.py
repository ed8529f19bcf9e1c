"""The whole gate with its documents in Firestore: chosen by settings, audited like any store."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.firestore import emulator
from tests.firestore.wire_server import Refusal, WireServer

from toolgate import demo
from toolgate.document_stores import uses_firestore
from toolgate.settings import read_settings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

NO_CREDENTIALS = (
    "Failed to initialize Firestore. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """The real emulator."""
    with emulator.running() as address:
        yield address


async def test_tools_work_on_documents_in_firestore(tmp_path: Path, host: str) -> None:
    settings = {"documents__url": "firestore://demo-gate", "google__emulator_host": host}
    async with opened_kit(tmp_path, writes=True, **settings) as kit:
        jane = {"email": "jane@example.com", "apps": ["hub"], "isAdmin": False}
        made = await kit.call("create_document", collection="users", document_id="j", data=jane)
        again = await kit.call("create_document", collection="users", document_id="j", data={})
        found = await kit.call("get_document", collection="users", document_id="j")
        hub = {"field": "apps", "operator": "array-contains", "value": "hub"}
        listed = await kit.call("query_collection", collection="users", filters=[hub])
        may = await kit.call("check_permission", user_id="j", app_id="hub")
        rows = await kit.audit_rows()
    assert made.body == {"id": "j", "success": True}
    assert again.status == 409
    assert again.body["success"] is False
    assert found.body == {"id": "j", **jane}
    assert [one["id"] for one in listed.body["data"]] == ["j"]
    assert may.body["granted"] is True
    assert [(row["tool_name"], row["error_type"]) for row in rows] == [
        ("create_document", None),
        ("create_document", "conflict"),
        ("get_document", None),
        ("query_collection", None),
        ("check_permission", None),
    ]


@pytest.mark.parametrize(
    "variables",
    [
        {"GOOGLE_APPLICATION_CREDENTIALS": "no-such-file.json"},
        {"FIREBASE_SERVICE_ACCOUNT_KEY": "{broken"},
        {"TOOLGATE_DOCUMENTS__URL": "firestore://somewhere"},
    ],
    ids=["missing file", "broken key", "no credentials"],
)
async def test_bad_credentials_give_the_seeds_error_and_schema_tools_work(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    chosen = read_settings(flags={"data": tmp_path, "appdata.writes": True}, environment=variables)
    assert uses_firestore(chosen)
    given = {
        "documents__url": chosen.documents.url,
        "google__credentials_file": chosen.google.credentials_file,
        "google__service_account": chosen.google.service_account,
    }
    async with opened_kit(tmp_path, writes=True, **given) as kit:
        read = await kit.call("get_document", collection="users", document_id="abc123")
        write = await kit.call("create_document", collection="users", data={"a": 1})
        schema = await kit.call("describe_collection", collection_name="users")
        rows = await kit.audit_rows()
        with pytest.raises(demo.NotForDemo, match="Firestore"):
            await demo.load_demo(kit.app)
    assert read.body == {"error": NO_CREDENTIALS}
    assert write.body == {"error": NO_CREDENTIALS, "success": False}
    assert schema.error is None
    assert [row["error_type"] for row in rows if row["tool_name"] == "create_document"] == [
        "unavailable"
    ]


async def test_a_store_that_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    async with WireServer() as server:
        settings = {"documents__url": "firestore://demo", "google__emulator_host": server.host}
        async with opened_kit(tmp_path, **settings) as kit:
            server.refusal = Refusal(grpc.StatusCode.PERMISSION_DENIED, "secret rule text")
            refused = await kit.call("get_document", collection="users", document_id="a")
    assert refused.status == 503
    assert "secret" not in refused.raw.decode()
