"""What people ask for in documents is done as they last asked, and no more often than it helps."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.ports.documents import Query, StoredDocument
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


async def store(kit: Kit, path: str, **fields: Any) -> None:
    done = await kit.call("firestore_write", path=path, document=fields)
    assert done.status == 200, done.body


async def stored(kit: Kit, path: str) -> dict[str, Any]:
    return (await kit.call("firestore_read", path=path)).body


async def run(kit: Kit, id: str) -> dict[str, Any]:
    body = (await kit.call("run_cron", id=id)).body
    assert body["status"] == "succeeded", body
    return body["result"]


def changed_after_the_page(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, path: str, **fields: Any
) -> None:
    """Somebody changes a document once a page with it was read."""
    query = SqlDocuments.query
    collection = path.partition("/")[0]

    async def then_changed(self: SqlDocuments, asked: Query) -> Sequence[StoredDocument]:
        found = await query(self, asked)
        if asked.collection == collection and found:
            await store(kit, path, **fields)
        return found

    monkeypatch.setattr(SqlDocuments, "query", then_changed)


@pytest.mark.parametrize("kind", ["deletion", "export", "other"])
async def test_a_request_withdrawn_meanwhile_is_not_met(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    await store(kit, "users/anna", auth={"email": "anna@shop.example"})
    await store(kit, "data-requests/r1", uid="anna", type=kind, status="pending")
    changed_after_the_page(kit, monkeypatch, "data-requests/r1", status="withdrawn")
    assert await run(kit, "data-requests") == {"exported": 0, "deleted": 0, "refused": 0}
    monkeypatch.undo()
    assert (await stored(kit, "users/anna"))["auth"]["email"] == "anna@shop.example"
    assert (await stored(kit, "data-requests/r1"))["status"] == "withdrawn"
    assert await stored(kit, "data-exports/r1") == {}
    contact = await kit.call("create_contact", email="anna@shop.example", skipValidation=True)
    assert contact.status == 200, "no consent was revoked"


async def test_who_asks_many_times_gets_one_export(kit: Kit) -> None:
    await store(kit, "users/anna", name="Anna")
    await store(kit, "users/ben", name="Ben")
    for number in range(3):
        await store(kit, f"data-requests/r{number}", uid="anna", type="export", status="pending")
    await store(kit, "data-requests/s", uid="ben", type="export", status="pending")
    assert (await run(kit, "data-requests"))["exported"] == 4
    results = [(await stored(kit, f"data-requests/{one}"))["result"] for one in ("r0", "r1", "r2")]
    assert results == ["data-exports/r0"] * 3
    assert (await stored(kit, "data-exports/r0"))["user"]["name"] == "Anna"
    assert (await stored(kit, "data-exports/s"))["user"]["name"] == "Ben"
    assert await stored(kit, "data-exports/r1") == {}


async def test_an_export_larger_than_a_document_is_read_in_parts(kit: Kit) -> None:
    text = "x" * 1_000_000
    await store(kit, "users/anna", text=text)
    await store(kit, "notifications/t1", token="t1", owner="anna", text=text)
    await store(kit, "data-requests/r1", uid="anna", type="export", status="pending")
    assert (await run(kit, "data-requests"))["exported"] == 1
    export = await stored(kit, (await stored(kit, "data-requests/r1"))["result"])
    assert export["uid"] == "anna"
    user, device = [await stored(kit, one) for one in export["parts"]]
    assert (user["text"], device["text"], device["token"]) == (text, text, "t1")


@pytest.mark.parametrize("change", [{"status": "withdrawn"}, {"post": {"title": "Autumn"}}])
async def test_a_post_changed_meanwhile_is_not_published(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    post = {"title": "Spring is here", "body": "It is warm. Go out."}
    await store(kit, "posts-queue/p1", post=post, status="pending")
    changed_after_the_page(kit, monkeypatch, "posts-queue/p1", **change)
    nothing = {"published": 0, "failed": 0, "waiting": 0}
    assert await run(kit, "blog-auto-publisher") == nothing
    monkeypatch.undo()
    left = await stored(kit, "posts-queue/p1")
    assert left["status"] == change.get("status", "pending")
    published = int("post" in change)
    assert await run(kit, "blog-auto-publisher") == nothing | {"published": published}
    if published:
        path = (await stored(kit, "posts-queue/p1"))["path"]
        assert path.endswith("-autumn.md"), path
