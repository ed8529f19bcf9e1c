"""What a store refuses, told with the code of the reason; and where the stores are."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.firestore.wire_server import Refusal
from tests.packs.network.conftest import Network
from tests.rtdb.wire_server import Refused

from toolgate.settings import BadSettings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

READ = {"path": "a/b"}
WRITE = {"path": "a/b", "data": {"x": 1}}
CALLS = [("firebase.read", READ), ("firebase.write", WRITE)]


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=["read", "write"])
@pytest.mark.parametrize(
    ("status", "code", "name"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, -32101, "PERMISSION_DENIED"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, -32401, "QUOTA_EXCEEDED"),
        (grpc.StatusCode.INTERNAL, -32500, "CONNECTION_ERROR"),
    ],
)
async def test_what_firestore_refuses(
    at_firebase: Network, tool: str, arguments: Any, status: Any, code: int, name: str
) -> None:
    assert at_firebase.firestore is not None
    at_firebase.firestore.refusal = Refusal(status, "no")
    error = await at_firebase.refused(tool, database="firestore", **arguments)
    assert (error["code"], error["data"]["name"]) == (code, name)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=["read", "write"])
@pytest.mark.parametrize(
    ("status", "code", "name"),
    [
        (401, -32101, "PERMISSION_DENIED"),
        (429, -32401, "QUOTA_EXCEEDED"),
        (500, -32500, "CONNECTION_ERROR"),
    ],
)
async def test_what_the_realtime_database_refuses(
    at_firebase: Network, tool: str, arguments: Any, status: int, code: int, name: str
) -> None:
    assert at_firebase.realtime is not None
    at_firebase.realtime.failures = [Refused(status, {"error": "no"})] * 5
    error = await at_firebase.refused(tool, database="realtime", **arguments)
    assert (error["code"], error["data"]["name"]) == (code, name)


async def test_one_database_that_is_away_leaves_the_other(at_firebase: Network) -> None:
    assert at_firebase.firestore is not None
    at_firebase.firestore.refusal = Refusal(grpc.StatusCode.UNAVAILABLE, "down")
    await at_firebase.write("realtime", "a", 1)
    assert await at_firebase.read("realtime", "a") == 1


async def test_a_realtime_database_needs_a_service_account(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="needs a service account"):
        async with opened_kit(tmp_path, packs__enabled=["network"], tree__url="rtdb://demo"):
            pass


@pytest.mark.parametrize("url", ["ftp://a", "rtdb://", "https://u:p@host", "rtdb://a/b"])
async def test_a_place_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadSettings, match=r"tree\.url"):
        async with opened_kit(tmp_path, packs__enabled=["network"], tree__url=url):
            pass


async def test_the_documents_of_this_pack_are_its_own(tmp_path: Path) -> None:
    """What is written to `users` here makes nobody an admin, and is no user of the application."""
    everything = ["appdata", "backend", "network"]
    async with opened_kit(tmp_path, writes=True, packs__enabled=everything) as kit:
        network = Network(kit)
        await network.write("firestore", "users/mallory", {"roles": {"admin": True}})
        assert (await kit.call("firestore_read", path="users/mallory")).body == {}
        hidden = await kit.call("get_document", collection="users", document_id="mallory")
        assert hidden.status == 404
        assert not await kit.app.credentials.users.is_admin("mallory")
