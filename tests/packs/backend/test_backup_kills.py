"""`create_backup` on a server that dies, or whose store does: never half a backup that counts."""

import http.client
import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.databases import KINDS
from tests.faults.server import Running, served, until
from tests.processes import command_of, environment_of, everybody
from tests.seaweedfs import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server, running_seaweedfs

from toolgate.adapters.obstore.blobs import ObstoreBlobs, file_blobs
from toolgate.backups.apart import PROCESS
from toolgate.backups.stored import StoredBackup, StoredBackups
from toolgate.cli.main import run
from toolgate.ports.documents import Create
from toolgate.testing import opened_kit

pytestmark = pytest.mark.timeout(600)

SMALL_PARTS = "import os, signal; from toolgate.backups import stored; stored.PART_BYTES = 1000\n"
AT_A_PART = """
put = stored.PartSink._put
async def dying(self, part):
    if self.parts == {count}:
        os.kill(os.getpid(), signal.SIGKILL)
    await put(self, part)
stored.PartSink._put = dying
"""
BEFORE_THE_END = """
async def dying(self):
    await finish(self)
    os.kill(os.getpid(), signal.SIGKILL)
finish, stored.PartSink.finish = stored.PartSink.finish, dying
"""
AFTER_THE_END = """
async def dying(self, *_):
    os.kill(os.getpid(), signal.SIGKILL)
stored.StoredBackups.keep = dying
"""
WHILE_REMOVING = """
removed = []
async def dying(self, name):
    await delete(self, name)
    removed.append(name)
    if len(removed) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
from toolgate.adapters.obstore.blobs import ObstoreBlobs
delete, ObstoreBlobs.delete = ObstoreBlobs.delete, dying
"""
POINTS = {
    "before the first part": AT_A_PART.format(count=0),
    "after the first part": AT_A_PART.format(count=1),
    "in the middle": AT_A_PART.format(count=4),
    "before the last blob": BEFORE_THE_END,
}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with some documents."""
    if request.param == "sqlite":
        (tmp_path / "data").mkdir(mode=0o700)
        address = f"sqlite:///{tmp_path}/data/toolgate.db"
    else:
        address = request.getfixturevalue("postgres_database")
    anyio.run(fill, tmp_path / "data", address)
    return address


async def fill(data: Path, url: str, each: int = 300) -> None:
    async with opened_kit(data, packs__enabled=["backend"], database__url=url) as kit:
        documents = kit.app.documents.of("backend")
        async with kit.app.gate.database.transaction() as tx:
            fields = {"text": os.urandom(each).hex()}
            await documents.write(tx, *(Create("orders", f"o{one}", fields) for one in range(100)))


def options(url: str, **more: str) -> dict[str, str]:
    return {
        "database__url": url,
        "packs__enabled": '["backend"]',
        "workflows__lease_seconds": "1",
    } | more


def whole_in(data: Path) -> list[StoredBackup]:
    blobs = file_blobs(data / "blobs" / "backend")
    return anyio.run(StoredBackups(blobs).whole)


def names_in(data: Path) -> set[str]:
    """The backups of which there is a file, whole or not."""
    folder = data / "blobs" / "backend" / "backups"
    return {one.parent.name for one in folder.glob("*/*")}


def killed_by_a_backup(data: Path, point: str, settings: dict[str, str]) -> None:
    """A server that dies in the middle of `create_backup`."""
    with served(data, SMALL_PARTS + point, **settings) as running:
        with suppress(OSError, http.client.HTTPException):
            answer = running.call("create_backup")
            pytest.fail(f"it was not killed: {answer.text}")
        assert running.process.wait() == -9
    until(lambda: not readers_for(data))


def readers_for(data: Path) -> list[int]:
    """The processes that read a database for the server of this data."""
    return [
        one
        for one in everybody()
        if PROCESS in command_of(one) and str(data) in environment_of(one)
    ]


def last_backup(running: Running) -> dict[str, Any]:
    answer = running.call("firestore_read", path="meta/stats")
    assert answer.status == 200, answer.text
    return answer.body["backups"]["lastBackup"]["status"]


def restores(data: Path, name: str, capsys: pytest.CaptureFixture[str]) -> int:
    """How many documents of the backup are in a new database."""
    new = data.parent / f"restored-{name}"
    new.mkdir()
    (new / "blobs").symlink_to(data / "blobs")
    capsys.readouterr()
    code = run(["restore", name, "--data", str(new), "--json"])
    told = json.loads(capsys.readouterr().out)
    return told["tables"]["documents"] if code == 0 else 0


@pytest.mark.parametrize("point", POINTS)
def test_a_server_that_dies_while_it_makes_one_leaves_none_and_the_next_finishes_it(
    tmp_path: Path, url: str, point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, settings = tmp_path / "data", options(url)
    killed_by_a_backup(data, POINTS[point], settings)
    assert whole_in(data) == []
    left = names_in(data)
    for name in left:
        assert restores(data, name, capsys) == 0, "half a backup was restored"
    with served(data, **settings) as running:
        until(lambda: len(whole_in(data)) == 1)
        joined = running.call("create_backup")
        assert joined.status == 200, joined.text
        names = {one.name for one in whole_in(data)}
        assert joined.body["name"] in names
        assert names_in(data) == names, "the remains are gone"
        assert left.isdisjoint(names), "each attempt has a name of its own"
        assert last_backup(running) == {"success": True, "error": None}
    for name in names:
        assert restores(data, name, capsys) >= 100


def test_one_that_was_complete_when_its_server_died_is_good(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, settings = tmp_path / "data", options(url)
    killed_by_a_backup(data, AFTER_THE_END, settings)
    (whole,) = whole_in(data)
    assert restores(data, whole.name, capsys) >= 100
    with served(data, **settings) as running:
        until(lambda: len(whole_in(data)) == 2)
        assert running.call("create_backup").status == 200


def test_a_server_that_dies_while_it_removes_an_old_one_leaves_no_half_of_it(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, settings = tmp_path / "data", options(url, backups__keep="1")
    with served(data, SMALL_PARTS, **settings) as running:
        first = running.call("create_backup").body["name"]
    killed_by_a_backup(data, WHILE_REMOVING, settings)
    (whole,) = whole_in(data)
    assert whole.name != first, "what loses a part is no backup any more"
    assert first in names_in(data)
    with served(data, **settings) as running:
        until(lambda: first not in names_in(data))
        assert running.call("create_backup").status == 200
        (kept,) = whole_in(data)
    assert restores(data, kept.name, capsys) >= 100


@contextmanager
def small_disk(folder: Path) -> Generator[None]:
    """A disk of 64 KiB at a folder."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_the_next_backup_works_once_there_is_room(
    tmp_path: Path, url: str
) -> None:
    data, full = tmp_path / "data", tmp_path / "full"
    anyio.run(fill_more, data, url)
    settings = options(url, blobs__url=f"file://{full}")
    with small_disk(full), served(data, SMALL_PARTS, **settings) as running:
        answer = running.call("create_backup")
        assert answer.status == 503, answer.text
        assert "is full" in answer.body["error"]
        assert last_backup(running) == {"success": False, "error": answer.body["error"]}
        blobs = file_blobs(full / "backend")
        assert anyio.run(StoredBackups(blobs).whole) == []
        subprocess.run(["mount", "-o", "remount,size=8m", str(full)], check=True)
        again = running.call("create_backup")
        assert again.status == 200, again.text
        (whole,) = anyio.run(StoredBackups(blobs).whole)
        assert anyio.run(folders_of, blobs) == {whole.name}, "the remains are gone"
        assert last_backup(running) == {"success": True, "error": None}


async def fill_more(data: Path, url: str) -> None:
    async with opened_kit(data, packs__enabled=["backend"], database__url=url) as kit:
        documents = kit.app.documents.of("backend")
        async with kit.app.gate.database.transaction() as tx:
            some = [
                Create("large", f"l{one}", {"text": os.urandom(1000).hex()}) for one in range(100)
            ]
            await documents.write(tx, *some)


def in_s3(server: S3Server) -> dict[str, str]:
    return {
        "blobs__url": f"s3://{BUCKET}/dying",
        "blobs__endpoint": server.endpoint,
        "blobs__region": REGION,
        "blobs__access_key_id": ACCESS_KEY,
        "blobs__secret_access_key": SECRET_KEY,
    }


def test_an_s3_that_dies_half_way_is_told_and_leaves_nothing_that_counts(
    tmp_path: Path, url: str
) -> None:
    data, kept = tmp_path / "data", tmp_path / "s3"
    kept.mkdir()
    with running_seaweedfs(kept) as s3:
        dies = AT_A_PART.format(count=3).replace("os.getpid()", str(s3.pid))
        with served(data, SMALL_PARTS + dies, **options(url, **in_s3(s3))) as running:
            answer = running.call("create_backup")
            assert answer.status == 503, answer.text
            assert "The blob store cannot be used now" in answer.body["error"]
            assert last_backup(running) == {"success": False, "error": answer.body["error"]}
            assert running.call("health_check").status == 200
    with running_seaweedfs(kept) as s3:
        blobs = s3.blobs("dying/backend")
        assert anyio.run(StoredBackups(blobs).whole) == []
        with served(data, **options(url, **in_s3(s3))) as running:
            name = running.call("create_backup").body["name"]
            assert [one.name for one in anyio.run(StoredBackups(blobs).whole)] == [name]
            assert anyio.run(folders_of, blobs) == {name}, "the remains are gone"


async def folders_of(blobs: ObstoreBlobs) -> set[str]:
    return {one.name.split("/")[1] async for page in blobs.pages() for one in page}
