"""`create_backup`: one moment of the whole database among the pack's blobs."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.seaweedfs import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server
from tests.servers import Server

from toolgate.backups import stored
from toolgate.backups.stored import StoredBackups, new_name
from toolgate.cli.main import run
from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


def backups_of(kit: Kit) -> StoredBackups:
    return StoredBackups(kit.app.blobs.of("backend"))


async def store(kit: Kit, *paths: str, fields: dict[str, Any] | None = None) -> None:
    for path in paths:
        collection, _, name = path.rpartition("/")
        async with kit.app.gate.database.transaction() as tx:
            documents = kit.app.documents.of("backend")
            await documents.write(tx, Create(collection, name, fields or {"of": path}))


async def last_backup(kit: Kit) -> dict[str, Any]:
    stats = await kit.app.documents.of("backend").get("meta", "stats")
    assert stats is not None
    return stats["backups"]["lastBackup"]


def restored(folder: Path, name: str, *options: str) -> dict[str, dict[str, Any]]:
    """The documents of a stored backup, read into a new database."""
    code = run(["restore", name, "--data", str(folder), *options])
    assert code == 0
    with closing(sqlite3.connect(folder / "toolgate.db")) as connection:
        rows = connection.execute("SELECT collection || '/' || id, fields FROM documents")
        return dict(rows.fetchall())


async def test_a_backup_is_made_told_and_noted(tmp_path: Path) -> None:
    async with opened_kit(tmp_path / "a") as kit:
        await store(kit, "orders/1", "orders/1/items/2")
        answer = await kit.call("create_backup")
        assert answer.status == 200, answer.text
        (whole,) = await backups_of(kit).whole()
        assert answer.body == {"name": whole.name}
        last = await last_backup(kit)
        assert last["status"] == {"success": True, "error": None}
        assert last["date"].keys() == {"timestamp", "timestampUNIX"}
    folder = tmp_path / "a" / "blobs" / "backend" / "backups" / whole.name
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "blobs").rename(tmp_path / "b" / "blobs")
    found = await anyio.to_thread.run_sync(restored, tmp_path / "b", whole.name)
    assert {"orders/1", "orders/1/items/2"} <= found.keys()


async def test_documents_that_the_expression_matches_are_left_out_with_their_changes(
    tmp_path: Path,
) -> None:
    async with opened_kit(tmp_path / "a") as kit:
        await store(kit, "logs/1", "logs/1/lines/2", "orders/logs", "orders/1")
        answer = await kit.call("create_backup", deletionRegex="^logs/")
        assert answer.status == 200, answer.text
        assert await kit.app.documents.of("backend").get("logs", "1"), "nothing is deleted"
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "blobs").rename(tmp_path / "b" / "blobs")
    found = await anyio.to_thread.run_sync(restored, tmp_path / "b", answer.body["name"])
    assert found.keys() == {"orders/logs", "orders/1"}
    with closing(sqlite3.connect(tmp_path / "b" / "toolgate.db")) as connection:
        changed = {path for (path,) in connection.execute("SELECT path FROM changes")}
        entries = {id for (id,) in connection.execute("SELECT id FROM document_index")}
    assert changed == {"orders/logs", "orders/1"}
    assert entries == {"logs", "1"}


@pytest.mark.parametrize("expression", ["(", "[a", "(?=a)", r"\1", "a" * 1001])
async def test_a_bad_expression_is_refused_and_nothing_is_made(
    tmp_path: Path, expression: str
) -> None:
    async with opened_kit(tmp_path) as kit:
        answer = await kit.call("create_backup", deletionRegex=expression)
        assert answer.status == 400
        assert "deletionRegex" in answer.body["error"]
        assert await backups_of(kit).whole() == []


async def test_an_evil_expression_takes_linear_time(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        await store(kit, f"logs/{'a' * 1000}!")
        with anyio.fail_after(60):
            assert (await kit.call("create_backup", deletionRegex="(a+)+$")).status == 200


async def test_only_so_many_are_kept(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, backups__keep=2) as kit:
        names = [(await kit.call("create_backup")).body["name"] for _ in range(4)]
        assert [one.name for one in await backups_of(kit).whole()] == names[2:]


async def test_what_was_never_finished_counts_for_nothing_and_is_removed(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        blobs, name, short = kit.app.blobs.of("backend"), new_name(), new_name()
        await blobs.put(f"backups/{name}/part-000001", b"half")
        await blobs.put(f"backups/{short}/part-000002", b"second half")
        await blobs.put(f"backups/{short}/complete-000002", b"{}")
        await blobs.put("artifacts/other", b"of somebody else")
        assert await backups_of(kit).whole() == []
        made = (await kit.call("create_backup")).body["name"]
        assert [one.name for one in await backups_of(kit).whole()] == [made]
        left = [one.name async for page in blobs.pages() for one in page]
        assert {one for one in left if not one.startswith(f"backups/{made}/")} == {
            "artifacts/other"
        }


async def test_two_at_once_are_one(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await kit.call("create_backup"))

        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(ask)
        assert [one.status for one in answers] == [200, 200]
        assert answers[0].body == answers[1].body
        assert len(await backups_of(kit).whole()) == 1


async def test_large_backups_are_stored_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "PART_BYTES", 1000)
    async with opened_kit(tmp_path / "a", demo_data=True) as kit:
        name = (await kit.call("create_backup")).body["name"]
        (whole,) = await backups_of(kit).whole()
        assert whole.parts > 5
        documents = await kit.app.documents.of("backend").get("users", "_test-basic")
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "blobs").rename(tmp_path / "b" / "blobs")
    found = await anyio.to_thread.run_sync(restored, tmp_path / "b", name)
    assert documents is not None
    assert "users/_test-basic" in found


@pytest.mark.parametrize("role", [Role.USER, Role.PUBLIC])
async def test_only_admins_may(tmp_path: Path, role: Role) -> None:
    async with opened_kit(tmp_path) as kit:
        caller = of_role(role, "key:1", "anna" if role is Role.USER else None)
        assert (await kit.call("create_backup", as_=caller)).error is not None
        assert await backups_of(kit).whole() == []


async def test_a_dry_run_is_refused_and_stores_nothing(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        assert (await kit.call("create_backup", dry_run=True)).error_type == "access_denied"
        assert await backups_of(kit).whole() == []


def in_s3(server: S3Server, secret: str) -> dict[str, Any]:
    return {
        "blobs__url": f"s3://{BUCKET}/backups-{new_name()}",
        "blobs__endpoint": server.endpoint,
        "blobs__region": REGION,
        "blobs__access_key_id": ACCESS_KEY,
        "blobs__secret_access_key": secret,
    }


@pytest.mark.timeout(600)
async def test_in_s3_a_backup_is_as_good(tmp_path: Path, s3_server: S3Server) -> None:
    async with opened_kit(tmp_path, **in_s3(s3_server, SECRET_KEY)) as kit:
        await store(kit, "orders/1")
        answer = await kit.call("create_backup")
        assert answer.status == 200, answer.text
        backups = backups_of(kit)
        (whole,) = await backups.whole()
        size = 0
        async for piece in backups.read(whole.name):
            size += len(piece)
        assert size == whole.size


@pytest.mark.timeout(600)
async def test_a_wrong_secret_is_an_error_and_noted(tmp_path: Path, s3_server: S3Server) -> None:
    async with opened_kit(tmp_path, **in_s3(s3_server, "wrong-secret-of-tests")) as kit:
        answer = await kit.call("create_backup")
        assert answer.status == 503
        assert answer.body["error"] == "The blob store refuses the credentials (settings blobs.*)."
        last = await last_backup(kit)
        assert last["status"] == {"success": False, "error": answer.body["error"]}
        assert "wrong-secret" not in answer.text


def test_over_http_and_with_the_command(server: Server) -> None:
    with server.client() as client:
        own = client.post("/backend-manager/admin/backup", json={})
        assert own.status_code == 200, own.text
        assert own.json().keys() == {"name"}
        bad = client.post("/backend-manager/admin/backup", json={"deletionRegex": "("})
        assert (bad.status_code, bad.json().keys()) == (400, {"error"})
    with server.client(None) as stranger:
        assert stranger.post("/backend-manager/admin/backup", json={}).status_code == 401
    with server.client("user") as user:
        assert user.post("/backend-manager/admin/backup", json={}).status_code in {403, 404}


async def test_old_ones_go_by_their_age_but_never_the_newest(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, backups__keep=3, backups__days=30) as kit:
        world: BackendWorld = kit.app.worlds["backend"].world
        now = datetime(2026, 3, 31, 12, tzinfo=UTC)
        kept, names = backups_of(kit), list[str]()
        for days in (80, 40, 31, 29, 0):
            earlier = replace(world.backups, clock=lambda days=days: now - timedelta(days=days))
            object.__setattr__(world, "backups", earlier)
            names.append((await kit.call("create_backup")).body["name"])
            whole = [one.name for one in await kept.whole()]
            assert whole[-1] == names[-1]
            assert len(whole) <= 3
        assert whole == names[3:]
        assert await kept.keep(3, now + timedelta(days=1000)) == names[3:4]
        assert await kept.keep(1, now + timedelta(days=1000)) == [], "the newest stays"


async def test_the_list_tells_what_is_whole_damaged_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened_kit(tmp_path) as kit:
        names = [(await kit.call("create_backup")).body["name"] for _ in range(2)]
        half = new_name()
        await kit.app.blobs.of("backend").put(f"backups/{half}/part-000001", b"half")
    (part,) = (tmp_path / "blobs" / "backend" / "backups" / names[0]).glob("part-*")
    part.write_bytes(part.read_bytes()[:-100])

    def listed(*words: str) -> str:
        assert run(["backup", "--list", "--data", str(tmp_path), *words]) == 0
        return "".join(capsys.readouterr())

    told = json.loads(await anyio.to_thread.run_sync(listed, "--json"))
    assert [one["name"] for one in told["backups"]] == names
    assert [one["state"][:7] for one in told["backups"]] == ["damaged", "whole"]
    assert told["unfinished"] == [half]
    text = await anyio.to_thread.run_sync(listed)
    assert f"No backup: {half}" in text
    cut = ["restore", names[0], "--data", str(tmp_path), "--replace", "toolgate.db"]
    assert await anyio.to_thread.run_sync(run, cut) == 1
    assert "cut, or never finished" in capsys.readouterr().err
