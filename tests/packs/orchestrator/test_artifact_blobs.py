"""The bytes of artifacts: never half, never wrong, never left behind."""

import base64
import hashlib
import os
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import select, update
from tests.databases import STARTS_A_SERVER
from tests.packs.orchestrator.calls import BUILD, PM, refused, result
from tests.packs.orchestrator.test_artifacts import DEMO, content, encoded, put, stored_files
from tests.seaweedfs import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server

from toolgate.app import opened
from toolgate.db.tables import signing_keys
from toolgate.db.transactions import Transaction
from toolgate.gate.attachments import MAX_EMBEDDED, Delivery
from toolgate.gate.calls import Call
from toolgate.packs.orchestrator.artifacts import reaper as reaper_module
from toolgate.packs.orchestrator.artifacts.reaper import GRACE_SECONDS, SETTLE_SECONDS, Reaper
from toolgate.packs.orchestrator.sql.artifact_tables import artifacts
from toolgate.packs.orchestrator.sql.artifacts import SqlArtifacts
from toolgate.packs.orchestrator.world import OrchestratorWorld
from toolgate.ports.blobs import BlobMissing, Data
from toolgate.ports.documents import StoreUnavailable
from toolgate.settings import read_settings
from toolgate.testing import Kit, opened_kit
from toolgate.testing.blobs import MemoryBlobs

pytestmark = pytest.mark.anyio

PUTS = 50


def world_of(kit: Kit) -> OrchestratorWorld:
    return kit.app.worlds["orchestrator"].world


def reaper_at(kit: Kit, later: float) -> Reaper:
    """A reaper for whom it is so much later."""
    world = world_of(kit)
    folder = world.blob_names.folder
    return Reaper(world.blobs, world.artifacts, folder, clock=lambda: time.time() + later)


def file_of(folder: Path, ref: str) -> Path:
    return folder / "blobs" / "orchestrator" / ref


async def refs(kit: Kit) -> set[str]:
    wanted = select(artifacts.c.storage_ref)
    return await kit.app.gate.database.read(lambda one: set(one.execute(wanted).scalars()))


async def blobs_of(kit: Kit) -> set[str]:
    return {one.name async for page in world_of(kit).blobs.pages() for one in page}


async def test_a_flipped_byte_is_told(kit: Kit, tmp_path: Path) -> None:
    made = await put(kit, "a", b"hello")
    file_of(tmp_path, made["storage_ref"]).write_bytes(b"hellp")
    error = await refused(kit, "artifact.get", PM, task_id=BUILD, path="a")
    assert error["type"] == "gone"
    assert "does not have its checksum" in error["message"]
    assert made["storage_ref"] in error["message"]
    for other in (b"hell", b"hello!", b""):
        file_of(tmp_path, made["storage_ref"]).write_bytes(other)
        error = await refused(kit, "artifact.get", PM, task_id=BUILD, path="a")
        assert "does not have its checksum" in error["message"]
    await put(kit, "a", b"again")
    assert await content(kit, "a") == b"again"


async def test_a_missing_blob_is_told(kit: Kit, tmp_path: Path) -> None:
    made = await put(kit, "a", b"hello")
    file_of(tmp_path, made["storage_ref"]).unlink()
    error = await refused(kit, "artifact.get", PM, task_id=BUILD, path="a")
    assert error["type"] == "gone"
    assert "its blob is not in the store" in error["message"]
    assert (await result(kit, "artifact.list", PM, task_id=BUILD))["items"]


@pytest.mark.parametrize("instead", ["nothing", "an empty folder", "a file"])
async def test_a_store_that_is_away_has_lost_nothing(
    kit: Kit, tmp_path: Path, instead: str
) -> None:
    await put(kit, "a", b"hello")
    folder, away = tmp_path / "blobs" / "orchestrator", tmp_path / "away"
    folder.rename(away)
    if instead == "an empty folder":
        folder.mkdir()
    elif instead == "a file":
        folder.write_bytes(b"")
    error = await refused(kit, "artifact.get", PM, task_id=BUILD, path="a")
    assert (error["type"], "blobs.url" in error["message"]) == ("unavailable", True)
    if instead == "a file":
        folder.unlink()
    away.rename(folder)
    assert await content(kit, "a") == b"hello"


async def test_a_read_makes_no_folder_and_the_first_blob_does(tmp_path: Path) -> None:
    flags = {"data": tmp_path, "packs.enabled": ["orchestrator"]}
    settings = read_settings(flags=flags, environment={})
    async with opened(settings):
        pass
    (tmp_path / "blobs" / "orchestrator").rmdir()
    (tmp_path / "blobs").rmdir()
    async with opened(settings, existing=True) as app:
        blobs = app.blobs.of("orchestrator")
        with pytest.raises(BlobMissing):
            await blobs.digest("a/b")
        with pytest.raises(StoreUnavailable):
            await blobs.check()
        await blobs.delete("a/b")
        assert not (tmp_path / "blobs").exists()
        await blobs.put("a/b", b"1")
        await blobs.check(used=True)
    assert (tmp_path / "blobs" / "orchestrator").stat().st_mode & 0o077 == 0


async def test_one_that_is_replaced_while_it_is_read_is_to_be_asked_for_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(kit, "a", b"old")
    world, read = world_of(kit), SqlArtifacts.get

    async def replaced_after(self: SqlArtifacts, *given: Any) -> Any:
        found = await read(self, *given)
        monkeypatch.setattr(SqlArtifacts, "get", read)
        await put(kit, "a", b"new")
        await world.blobs.delete(found["storage_ref"])  # as another server's reaper would
        return found

    monkeypatch.setattr(SqlArtifacts, "get", replaced_after)
    error = await refused(kit, "artifact.get", PM, task_id=BUILD, path="a")
    assert (error["type"], "Ask again" in error["message"]) == ("conflict", True)
    assert await content(kit, "a") == b"new"


async def test_a_replaced_blob_is_removed_a_little_later(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(kit)
    first = (await put(kit, "a", b"old"))["storage_ref"]
    second = (await put(kit, "a", b"new"))["storage_ref"]
    assert await world.reaper.remove_replaced() == 0, "somebody may be reading it"
    assert first in await blobs_of(kit)
    monkeypatch.setattr(world.reaper, "_clock", lambda: time.time() + SETTLE_SECONDS + 1)
    assert await world.reaper.remove_replaced() == 1
    assert {first, second} & await blobs_of(kit) == {second}
    assert await content(kit, "a") == b"new"


async def test_what_a_call_that_fails_left_is_removed_and_nothing_else(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError("the database is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "run", fail)
        outcome = await kit.call(
            "artifact.put", PM, task_id=BUILD, path="a", content_bytes_base64=encoded(b"lost")
        )
    assert outcome.error is not None
    kept = await refs(kit)
    assert len(await blobs_of(kit) - kept) == 1
    assert await reaper_at(kit, 0).sweep() == 0, "it may be of a call that is not done"
    assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == 1
    assert await blobs_of(kit) == kept
    assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == 0
    assert await content(kit, DEMO)


async def test_other_blobs_of_the_pack_are_left_alone(kit: Kit) -> None:
    await world_of(kit).blobs.put("backups/first", b"1")
    assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == 0
    assert "backups/first" in await blobs_of(kit)


async def test_blobs_of_another_database_are_left_alone(kit: Kit, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "packs__enabled": ["orchestrator"],
        "blobs__url": f"file://{tmp_path}/blobs",
    }
    async with opened_kit(tmp_path / "other", **settings) as other:
        # Databases of tests are copies of one; others are made with a key of their own.
        key = update(signing_keys).values(key=os.urandom(32))
        await other.app.gate.database.write(lambda one: one.execute(key))
    async with opened_kit(tmp_path / "other", demo_data=True, **settings) as other:
        await put(other, "a", b"theirs")
        assert await refs(other) < await blobs_of(kit), "both see all there are"
        assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == 0
        assert await reaper_at(other, GRACE_SECONDS + 60).sweep() == 0
        assert await content(other, "a") == b"theirs"
    assert await content(kit, DEMO)


async def test_a_write_that_is_taken_back_keeps_the_old_blob(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await put(kit, "a", b"old")
    audit = kit.app.gate.audit

    def fail(*_: Any) -> None:
        raise RuntimeError("the audit cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(type(audit), "store_with_write", fail)
        outcome = await kit.call(
            "artifact.put", PM, task_id=BUILD, path="a", content_bytes_base64=encoded(b"new")
        )
    assert outcome.error is not None
    world = world_of(kit)
    monkeypatch.setattr(world.reaper, "_clock", lambda: time.time() + GRACE_SECONDS + 60)
    assert await world.reaper.remove_replaced() == 0
    assert await world.reaper.sweep() == 1, "the new one"
    assert (await refs(kit)) >= {made["storage_ref"]}
    assert await content(kit, "a") == b"old"


async def test_the_reaper_runs_at_the_start_and_goes_on_after_a_failure(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_SECONDS", "EVERY_SECONDS", "SETTLE_SECONDS"):
        monkeypatch.setattr(reaper_module, name, 0.0)
    blobs, swept = MemoryBlobs(), anyio.Event()
    pages, calls = blobs.pages, list[int]()

    def failing_once() -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("not now")
        swept.set()
        return pages()

    monkeypatch.setattr(blobs, "pages", failing_once)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Reaper(blobs, world_of(kit).artifacts, "artifacts/").run)
        await swept.wait()
        tasks.cancel_scope.cancel()
    assert len(calls) >= 2


async def test_only_a_store_that_was_asked_is_said_to_work_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is due in most rounds; they say nothing about a store that is away."""
    for name in ("FIRST_SECONDS", "SETTLE_SECONDS"):
        monkeypatch.setattr(reaper_module, name, 0.0)
    blobs, rounds, enough = MemoryBlobs(), list[int](), anyio.Event()

    def failing() -> Any:
        raise StoreUnavailable("not now")

    monkeypatch.setattr(blobs, "pages", failing)
    reaper = Reaper(blobs, world_of(kit).artifacts, "artifacts/")

    async def nothing_due() -> int:
        rounds.append(1)
        if len(rounds) == 3:
            enough.set()
        return 0

    monkeypatch.setattr(reaper, "remove_replaced", nothing_due)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reaper.run)
        await enough.wait()
        tasks.cancel_scope.cancel()
    assert any("could not be removed: not now" in line for line in caplog.messages)
    assert not any("removed again" in line for line in caplog.messages)


async def test_a_store_that_does_not_answer_is_told(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise StoreUnavailable("The blob store cannot be used now. Try again later.")

    before = await refs(kit)
    with monkeypatch.context() as patch:
        patch.setattr(type(world_of(kit).blobs), "put", fail)
        given = {"task_id": BUILD, "path": "a", "content_bytes_base64": ""}
        error = await refused(kit, "artifact.put", PM, **given)
    assert error["message"] == "The blob store cannot be used now. Try again later."
    assert await refs(kit) == before


async def test_who_reads_while_others_write_gets_one_whole_version(kit: Kit) -> None:
    versions = [os.urandom(1000 + 37 * number) for number in range(PUTS)]
    known = {hashlib.sha256(data).hexdigest(): data for data in versions}
    await put(kit, "raced", versions[0])
    writing = PUTS - 1
    seen: list[str] = []

    async def write(data: bytes) -> None:
        nonlocal writing
        await put(kit, "raced", data)
        writing -= 1

    async def read() -> None:
        while writing:
            outcome = await kit.call("artifact.get", PM, task_id=BUILD, path="raced")
            assert outcome.error is None, outcome.body
            assert outcome.attached is not None
            told = outcome.body["result"]
            assert outcome.attached.data == known[told["checksum_sha256"]]
            assert told["size_bytes"] == len(outcome.attached.data)
            seen.append(told["checksum_sha256"])

    async with anyio.create_task_group() as tasks:
        for data in versions[1:]:
            tasks.start_soon(write, data)
        for _ in range(4):
            tasks.start_soon(read)
    assert len(set(seen)) > 1
    assert await content(kit, "raced") in versions
    last = await refs(kit)
    assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == PUTS - 1
    assert await blobs_of(kit) == last


async def test_the_first_ones_at_a_path_may_come_at_once(kit: Kit) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(put, kit, "new", b"%d" % number)
    assert await content(kit, "new") in {b"%d" % number for number in range(20)}


async def test_what_one_server_stores_another_reads_at_once(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, **settings) as other:
        for number in range(5):
            await put(kit, "shared", b"%d" % number)
            assert await content(other, "shared") == b"%d" % number


@STARTS_A_SERVER
async def test_artifacts_may_be_in_s3(tmp_path: Path, s3_server: S3Server) -> None:
    settings: dict[str, Any] = {
        "packs__enabled": ["orchestrator"],
        "blobs__url": f"s3://{BUCKET}/{tmp_path.name.replace('_', '-')}",
        "blobs__endpoint": s3_server.endpoint,
        "blobs__region": REGION,
        "blobs__access_key_id": ACCESS_KEY,
        "blobs__secret_access_key": SECRET_KEY,
    }
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        data = os.urandom(10 * 1024 * 1024)
        await put(kit, "large", data)
        assert await content(kit, "large") == data
        assert await content(kit, DEMO)
        assert not (tmp_path / "blobs").exists()
        await put(kit, "large", b"small")
        assert await reaper_at(kit, GRACE_SECONDS + 60).sweep() == 1
        assert await blobs_of(kit) == await refs(kit)


async def test_no_byte_is_read_for_a_link(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def read(self: Any, name: str) -> Data:
        raise AssertionError(f"{name} was read")

    long = base64.b64encode(b"x" * (MAX_EMBEDDED + 1)).decode()
    named = {"task_id": BUILD, "path": "site/long.html"}
    await result(kit, "artifact.put", PM, **named, content_bytes_base64=long)
    monkeypatch.setattr(type(world_of(kit).blobs), "read", read)
    outcome = await kit.app.gate.execute(
        Call(
            tool="artifact.get",
            arguments=named,
            principal=PM,
            request_id="test",
            transport="test",
            attachments=Delivery.LINK,
        )
    )
    assert outcome.error is None
    assert outcome.attached is not None
    assert (outcome.attached.data, outcome.attached.attachment.file_name) == (b"", "long.html")
    assert stored_files(tmp_path)
