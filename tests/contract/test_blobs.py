"""Every store of blobs keeps the contract; each has its own ways to fail."""

import os
import socket
import stat
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.blobs_contract import BlobsContract, listed, whole
from tests.databases import STARTS_A_SERVER
from tests.seaweedfs import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server

from toolgate.adapters.obstore import blobs as adapter
from toolgate.adapters.obstore import file_blobs
from toolgate.blob_stores import BlobStores
from toolgate.cli.blob_check import check_blobs
from toolgate.cli.checks import State
from toolgate.ports.blobs import Blobs
from toolgate.ports.documents import StoreUnavailable
from toolgate.setting_types import BadSettings
from toolgate.settings import read_settings
from toolgate.testing.blobs import MemoryBlobs

pytestmark = pytest.mark.anyio

PLACES = ["memory", "files", pytest.param("s3", marks=STARTS_A_SERVER)]


@pytest.fixture(params=PLACES)
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Blobs]:
    match request.param:
        case "memory":
            yield MemoryBlobs()
        case "files":
            yield file_blobs(tmp_path / "blobs")
        case _:
            server: S3Server = request.getfixturevalue("s3_server")
            yield server.blobs(uuid.uuid4().hex)


class TestBlobs(BlobsContract):
    """On every store."""


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    await file_blobs(tmp_path / "blobs").put("a/b/c", b"1")
    folders = [tmp_path / "blobs" / one for one in (".", "a", "a/b")]
    assert [mode_of(one) for one in folders] == [0o700] * 3
    assert mode_of(tmp_path / "blobs" / "a" / "b" / "c") == 0o600


async def test_folders_that_others_can_read_are_closed_when_a_blob_is_stored(
    tmp_path: Path,
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        folder.chmod(0o755)
    await file_blobs(tmp_path).put("a/b/c", b"1")
    modes = [mode_of(tmp_path / one) for one in ("a", "a/b", "a/b/c")]
    assert modes == [0o700, 0o700, 0o600]
    assert mode_of(tmp_path) == 0o755  # the operator's own, maybe for others too


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    blobs = file_blobs(tmp_path)
    await blobs.put("a/b", b"whole")
    left, fresh = tmp_path / "a" / "c#1", tmp_path / "a" / "d#12"
    for file in (left, fresh):
        file.write_bytes(b"half")
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago - 10, hour_ago - 10))
    os.utime(tmp_path / "a" / "b", (hour_ago - 10, hour_ago - 10))
    assert list(await listed(blobs)) == ["a/b"]
    assert await blobs.remove_unfinished(hour_ago) == 1
    assert (left.exists(), fresh.exists()) == (False, True)
    assert await whole(blobs, "a/b") == b"whole"


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    blobs = file_blobs(tmp_path / "blobs")
    (tmp_path / "blobs").rmdir()
    assert await listed(blobs) == {}
    with pytest.raises(StoreUnavailable, match=r"blobs\.url"):
        await blobs.check()


@STARTS_A_SERVER
async def test_a_wrong_secret_is_told_without_it(s3_server: S3Server) -> None:
    blobs = s3_server.blobs("wrong", secret="not-the-secret")
    for attempt in (blobs.put("a", b"1"), whole(blobs, "a")):
        with pytest.raises(StoreUnavailable) as told:
            await attempt
        assert str(told.value) == "The blob store refuses the credentials (settings blobs.*)."
    for attempt in (blobs.delete("a"), blobs.check()):  # the library does not say why
        with pytest.raises(StoreUnavailable):
            await attempt


async def test_a_server_that_is_not_there_is_told_without_its_address() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable) as told:
            await S3Server(endpoint).blobs("none").put("a", b"1")
    assert str(told.value) == "The blob store cannot be used now. Try again later."


@STARTS_A_SERVER
async def test_the_settings_name_the_place(tmp_path: Path, s3_server: S3Server) -> None:
    prefix = uuid.uuid4().hex
    environment = {
        "TOOLGATE_BLOBS__URL": f"s3://toolgate-tests/{prefix}/",
        "TOOLGATE_BLOBS__ENDPOINT": s3_server.endpoint,
        "AWS_ACCESS_KEY_ID": "toolgate-tests",
        "AWS_SECRET_ACCESS_KEY": "a-secret-of-tests",
        "AWS_REGION": "us-east-1",
    }
    settings = read_settings(flags={"data": tmp_path}, environment=environment)
    assert "a-secret-of-tests" not in repr(settings)
    await BlobStores(settings).of("pack").put("a", b"1")
    assert list(await listed(s3_server.blobs(prefix))) == ["pack/a"]
    assert await whole(s3_server.blobs(f"{prefix}/pack"), "a") == b"1"


async def test_without_settings_blobs_are_in_the_data_folder(tmp_path: Path) -> None:
    stores = BlobStores(read_settings(flags={"data": tmp_path}, environment={}))
    await stores.of("pack").put("a/b", b"1")
    await stores.of("other").put("a/b", b"2")
    assert (tmp_path / "blobs" / "pack" / "a" / "b").read_bytes() == b"1"
    assert await whole(stores.of("other"), "a/b") == b"2"
    elsewhere = {"data": tmp_path, "blobs.url": f"file://{tmp_path}/else%20where"}
    await BlobStores(read_settings(flags=elsewhere, environment={})).of("pack").put("a", b"3")
    assert (tmp_path / "else where" / "pack" / "a").read_bytes() == b"3"


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "REQUEST_SECONDS", 1)
    monkeypatch.setattr(adapter, "RETRIES", 0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable):
            await S3Server(endpoint).blobs("none").put("a", b"1")


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    given = {"data": tmp_path, "blobs.url": f"file://{tmp_path}/file/blobs"}
    with pytest.raises(BadSettings, match=r"Setting blobs\.url: the folder .* cannot be made"):
        BlobStores(read_settings(flags=given, environment={})).of("pack")


@STARTS_A_SERVER
async def test_doctor_says_whether_the_bucket_answers(tmp_path: Path, s3_server: S3Server) -> None:
    given = {
        "data": tmp_path,
        "blobs.url": f"s3://{BUCKET}/doctor",
        "blobs.endpoint": s3_server.endpoint,
        "blobs.region": REGION,
        "blobs.access_key_id": ACCESS_KEY,
    }
    told = []
    for secret in (SECRET_KEY, "wrong"):
        flags = {**given, "blobs.secret_access_key": secret}
        told.append(await check_blobs(read_settings(flags=flags, environment={})))
    assert [one.state for one in told] == [State.OK, State.FAIL]
    assert told[0].message == f"s3://{BUCKET}/doctor answers."
    assert "The blob store refuses the credentials (settings blobs.*" in told[1].message
    flags = {**given, "blobs.secret_access_key": SECRET_KEY, "blobs.url": "s3://no-such-bucket"}
    absent = await check_blobs(read_settings(flags=flags, environment={}))
    assert "The folder or bucket of blobs is not there (setting blobs.url)." in absent.message


async def test_doctor_says_where_nothing_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "RETRIES", 0)
    given = {
        "data": tmp_path,
        "blobs.url": "s3://bucket",
        "blobs.endpoint": "http://127.0.0.1:1",
        "blobs.access_key_id": "id",
        "blobs.secret_access_key": "secret",
    }
    told = await check_blobs(read_settings(flags=given, environment={}))
    assert "http://127.0.0.1:1 cannot be reached, or fails. Check the network" in told.message


async def test_doctor_says_where_there_are_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "RETRIES", 0)
    # Where a machine of AWS would ask for those of its role.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    given = {
        "data": tmp_path,
        "blobs.url": "s3://bucket",
        "blobs.endpoint": "http://127.0.0.1:1",
    }
    told = await check_blobs(read_settings(flags=given, environment={}))
    assert "AWS_ACCESS_KEY_ID (setting blobs.access_key_id) is not set" in told.message
    assert "refuses" not in told.message


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY (setting blobs.secret_access_key)"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID (setting blobs.access_key_id)"),
    ],
)
async def test_half_of_the_credentials_is_told(tmp_path: Path, given: str, missing: str) -> None:
    flags = {"data": tmp_path, "blobs.url": "s3://bucket"}
    settings = read_settings(flags=flags, environment={given: "half"})
    with pytest.raises(BadSettings) as refused:
        BlobStores(settings).of("pack")
    assert str(refused.value) == f"{missing} is not set, and {given} is. Set both or none."
    assert (await check_blobs(settings)).message == str(refused.value)


def test_an_endpoint_without_a_scheme_is_told_what_it_must_be() -> None:
    with pytest.raises(BadSettings, match=r"must be one of: https://HOST, http://HOST:PORT, not"):
        read_settings(flags={"blobs.endpoint": "localhost:9000"}, environment={})
