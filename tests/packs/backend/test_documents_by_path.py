"""firestore_read and firestore_write, through the gate and on their routes, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy.engine import make_url
from tests.patience import PATIENT
from tests.servers import Server, running_server

from toolgate.packs.backend.tools import firestore
from toolgate.ports.users import timestamp_record
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, database__url=database_url) as opened:
        yield opened


async def write(kit: Kit, path: str, document: dict[str, Any], **more: Any) -> str:
    outcome = await kit.call("firestore_write", path=path, document=document, **more)
    assert outcome.status == 200, outcome.body
    return outcome.body["path"]


async def read(kit: Kit, path: str) -> dict[str, Any]:
    outcome = await kit.call("firestore_read", path=path)
    assert outcome.status == 200, outcome.body
    return outcome.body


async def test_a_document_at_any_depth_is_read_back(kit: Kit) -> None:
    assert await write(kit, "orders/1/items/2", {"n": 5}) == "orders/1/items/2"
    assert (await read(kit, "orders/1/items/2"))["n"] == 5
    assert await read(kit, "orders/1") == {}
    assert (await read(kit, "/orders/1/items/2/"))["n"] == 5


async def test_an_absent_document_is_an_empty_object(kit: Kit) -> None:
    assert await read(kit, "orders/nothing") == {}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (None, "Path parameter required."),
        ("", "Path parameter required."),
        ("orders", "path must have an even number of segments"),
        ("orders/1/items", "path must have an even number of segments"),
        ("orders//1", "path must be names joined by single slashes"),
        ("orders/..", "path is not valid: a segment must not be '.' or '..'"),
        ("orders/__x__", "path is not valid: a segment must not begin and end with '__'"),
        ("orders/a\0b", "path is not valid: a segment must not contain"),
        (5, "path must be a string"),
    ],
)
async def test_a_path_of_no_document_is_refused(kit: Kit, path: Any, told: str) -> None:
    given = {} if path is None else {"path": path}
    for tool, more in (("firestore_read", {}), ("firestore_write", {"document": {"a": 1}})):
        outcome = await kit.send(tool, {**given, **more})
        assert (outcome.status, told in outcome.body["error"]) == (400, True), outcome.body


async def test_maps_are_merged_into_maps(kit: Kit) -> None:
    await write(kit, "orders/1", {"a": {"b": 1}, "kept": True})
    await write(kit, "orders/1", {"a": {"c": 2}})
    stored = await read(kit, "orders/1")
    assert (stored["a"], stored["kept"]) == ({"b": 1, "c": 2}, True)


async def test_without_merging_the_rest_is_gone(kit: Kit) -> None:
    await write(kit, "orders/1", {"a": {"b": 1}, "gone": True})
    await write(kit, "orders/1", {"a": {"c": 2}}, merge=False)
    stored = await read(kit, "orders/1")
    assert stored.keys() == {"a", "metadata"}
    assert stored["a"] == {"c": 2}


@pytest.mark.parametrize("merge", [True, False])
async def test_every_write_is_stamped(
    kit: Kit, merge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)])
    monkeypatch.setattr(firestore, "timestamp_record", lambda: timestamp_record(next(times)))
    await write(kit, "orders/1", {"metadata": {"mine": 1, "tag": "x"}}, merge=merge)
    first = (await read(kit, "orders/1"))["metadata"]
    assert (first["mine"], first["tag"]) == (1, "admin/firestore")
    stamp = {"timestamp": "2026-01-02T03:04:05.000Z", "timestampUNIX": 1767323045}
    assert first["updated"] == stamp
    await write(kit, "orders/1", {"metadata": "text"}, merge=merge)
    second = (await read(kit, "orders/1"))["metadata"]
    assert second["updated"]["timestamp"] == "2026-01-03T00:00:00.000Z"


@pytest.mark.parametrize("path", ["users/{pushid}", "users/{id}", "a/{pushId}/b/{}"])
async def test_a_placeholder_that_stands_for_nothing_is_refused(kit: Kit, path: str) -> None:
    outcome = await kit.call("firestore_write", path=path, document={"a": 1})
    assert outcome.status == 400
    assert "stands for nothing. Valid options: {pushId}, {nanoId}" in outcome.body["error"]
    assert await read(kit, path) == {}


async def test_ids_in_a_path_are_made_and_told(kit: Kit) -> None:
    first, second = [await write(kit, "orders/{pushId}", {"n": n}) for n in (1, 2)]
    assert first < second, "they sort by time"
    assert (await read(kit, second))["n"] == 2
    nano = await write(kit, "orders/{nanoId}/items/{nanoId}", {})
    _, one, _, other = nano.split("/")
    assert one != other
    assert len(one) == 21


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"a": [[1]]}, "document must not hold a list directly inside a list"),
        ({"__a__": 1}, "begins and ends with '__'"),
        ({"": 1}, "document must not have a field without a name"),
        ({"a": 2**63}, "document must hold only integers of at most 64 bits"),
        ({"a": "x" * 1_048_577}, "document must have at most 1048576 bytes"),
        ([], "document must be an object"),
    ],
)
async def test_what_firestore_cannot_hold_is_refused(kit: Kit, document: Any, told: str) -> None:
    outcome = await kit.send("firestore_write", {"path": "orders/1", "document": document})
    assert outcome.status == 400
    assert told in outcome.body["error"]
    assert await read(kit, "orders/1") == {}


async def test_documents_of_another_pack_are_not_seen(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True, packs__enabled=["appdata", "backend"]) as kit:
        theirs = await kit.call("get_document", collection="apps", document_id="justsplit")
        assert theirs.status == 200
        assert await read(kit, "apps/justsplit") == {}


async def test_a_dry_run_tells_the_change_without_the_secret(kit: Kit) -> None:
    await write(
        kit,
        "users/anna",
        {"api": {"privateKey": "pk_0123456789abcdef0123456789abcdef", "clientId": "c"}},
    )
    outcome = await kit.call(
        "firestore_write", path="users/anna", document={"team": "blue"}, dry_run=True
    )
    assert outcome.diff is not None
    assert "pk_0123456789abcdef0123456789abcdef" not in repr(outcome.diff)
    assert "team" not in await read(kit, "users/anna")


async def test_a_private_key_is_not_read(kit: Kit) -> None:
    document = {
        "api": {"privateKey": "pk_0123456789abcdef0123456789abcdef", "clientId": "c"},
        "roles": {"admin": True},
    }
    await write(kit, "users/anna", document)
    shown = await read(kit, "users/anna")
    assert shown["api"] == {"clientId": "c"}
    assert shown["roles"] == {"admin": True}, "an admin may make another one"
    found = await kit.call("firestore_query", queries=[{"collection": "users"}])
    assert "pk_0123456789abcdef0123456789abcdef" not in found.raw.decode() + found.text


async def test_the_write_and_its_audit_row_are_one(kit: Kit) -> None:
    await write(kit, "orders/1", {"secret": "payload"})
    row = (await kit.audit_rows())[-1]
    assert row["tool_name"] == "firestore_write"
    assert "payload" not in repr(row)


# Over HTTP, with two workers


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def two_workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings: dict[str, Any] = {"server__workers": 2}
    if request.param == "postgresql":
        room: str = request.getfixturevalue("postgres_room")
        with psycopg.connect(room, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS paths")
            connection.execute("CREATE DATABASE paths")
        url = make_url(room).set(database="paths").render_as_string(hide_password=False)
        settings["database__url"] = url
    with running_server(tmp_path_factory, **settings) as started:
        yield started


@pytest.mark.timeout(600)
async def test_fifty_merges_at_once_leave_fifty_keys(two_workers: Server) -> None:
    headers = {"Authorization": f"Bearer {two_workers.admin_key}"}
    async with httpx2.AsyncClient(
        base_url=two_workers.url, headers=headers, timeout=PATIENT, trust_env=False
    ) as http:

        async def merge(number: int) -> int:
            body = {"path": "orders/shared", "document": {"keys": {f"k{number}": number}}}
            return (await http.post("/backend-manager/admin/firestore", json=body)).status_code

        assert set(await asyncio.gather(*map(merge, range(50)))) == {200}
        found = await http.get("/backend-manager/admin/firestore", params={"path": "orders/shared"})
        assert found.json()["keys"] == {f"k{number}": number for number in range(50)}


def test_the_routes_answer_what_the_tools_answer(server: Server) -> None:
    with server.client() as admin:
        path = "/backend-manager/admin/firestore"
        made = admin.post(path, json={"path": "routes/1", "document": {"a": 1}})
        assert (made.status_code, made.json()) == (200, {"path": "routes/1"})
        found = admin.get(path, params={"path": "routes/1"})
        assert found.json()["a"] == 1
        assert (
            found.json() == admin.post("/v1/tools/firestore_read", json={"path": "routes/1"}).json()
        )
        absent = admin.get(path, params={"path": "routes/none"})
        assert (absent.status_code, absent.json()) == (200, {})
        missing = admin.get(path)
        assert (missing.status_code, missing.json()) == (400, {"error": "Path parameter required."})
        query = {"queries": [{"collection": "routes"}]}
        array = admin.post(f"{path}/query", json=query).json()
        assert [one["path"] for one in array] == ["routes/1"]
        assert admin.post("/v1/tools/firestore_query", json=query).json() == {"results": array}


def test_a_user_does_not_know_of_them(server: Server) -> None:
    with server.client("user") as user:
        hidden = user.get("/backend-manager/admin/firestore", params={"path": "users/a"})
        assert hidden.status_code == 404
