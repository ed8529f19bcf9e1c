"""Memory stays flat, however large the database is: backups by the tool to files and S3, and back.

SIZES says how many megabytes of documents: the first one is what the others are compared with.
PLACES says where backups go: files, S3.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest
from tests.databases import KINDS, new_database
from tests.faults.server import ask, served
from tests.processes import children_of
from tests.seaweedfs import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server

from toolgate.ports.documents import Create
from toolgate.testing import opened_kit

pytestmark = pytest.mark.timeout(4 * 3600)

SIZES = [int(one) for one in os.environ.get("SIZES", "100,1000").split(",")]
PLACES = os.environ.get("PLACES", "files,S3").split(",")
EACH = 50_000
MORE_MEGABYTES = 60
LOOK_SECONDS = 0.2
HOUR = 3600.0


async def fill(data: Path, url: str, before: int, megabytes: int) -> None:
    """Documents that hardly can be packed, up to so many megabytes."""
    async with opened_kit(data, packs__enabled=["backend"], database__url=url) as kit:
        documents = kit.app.documents.of("backend")
        for start in range(before * 1_000_000 // EACH, megabytes * 1_000_000 // EACH, 20):
            async with kit.app.gate.database.transaction() as tx:
                some = [
                    Create("large", f"l{start + one}", {"text": os.urandom(EACH // 2).hex()})
                    for one in range(20)
                ]
                await documents.write(tx, *some)


def peak_of(pid: int) -> int:
    """The most memory that a process ever had, in MB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    peaks = [one.split()[1] for one in status.splitlines() if one.startswith("VmHWM")]
    return int(peaks[0]) // 1000 if peaks else 0  # one that has just ended has none


def in_s3(server: S3Server) -> dict[str, str]:
    return {
        "blobs__url": f"s3://{BUCKET}/large",
        "blobs__endpoint": server.endpoint,
        "blobs__region": REGION,
        "blobs__access_key_id": ACCESS_KEY,
        "blobs__secret_access_key": SECRET_KEY,
    }


@contextmanager
def watched(pid: int) -> Generator[list[int]]:
    """The peaks of the process that reads the database for a server, as they are seen."""
    seen, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            seen.extend(peak_of(one) for one in children_of(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def made(data: Path, settings: dict[str, str], what: str) -> tuple[str, int, int]:
    """The name of a new backup, the server's peak, and that of the process that reads."""
    with (
        served(data, **settings) as running,
        closing(running.connection()) as connection,
        watched(running.process.pid) as reading,
    ):
        connection.timeout = HOUR
        began = time.monotonic()
        answer = ask(connection, "POST", "/v1/tools/create_backup", {})
        assert answer.status == 200, answer.text
        peak = peak_of(running.process.pid)
        print(
            f"\n{what}: {time.monotonic() - began:.0f} s, the server's peak {peak} MB, that of the "
            f"process that reads {max(reading)} MB",
            flush=True,
        )
        return answer.body["name"], peak, max(reading)


def restored(name: str, data: Path, settings: dict[str, str], what: str) -> int:
    """The peak of the command."""
    environment = {f"TOOLGATE_{key.upper()}": value for key, value in settings.items()}
    began = time.monotonic()
    command = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "restore", name, "--data", str(data)],
        env=os.environ | environment,
    )
    _, status, used = os.wait4(command.pid, 0)
    command.returncode = os.waitstatus_to_exitcode(status)
    assert command.returncode == 0
    peak = used.ru_maxrss // 1000
    print(f"{what}: {time.monotonic() - began:.0f} s, the command's peak {peak} MB", flush=True)
    return peak


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_flat(
    kind: str, tmp_path: Path, postgres_server: str, s3_server: S3Server
) -> None:
    data, before = tmp_path / "data", 0
    url = (
        f"sqlite:///{data}/toolgate.db"
        if kind == "sqlite"
        else new_database(postgres_server, "memory")
    )
    own = {"packs__enabled": '["backend"]', "limits__seconds": "3600"}
    peaks: dict[str, list[int]] = {}
    for size in SIZES:
        anyio.run(fill, data, url, before, size)
        before = size
        settings = own | {"database__url": url}
        s3 = in_s3(s3_server)
        name = place = ""
        for place in PLACES:
            store = s3 if place == "S3" else {}
            name, *both = made(data, settings | store, f"{kind}, {size} MB, into {place}")
            for process, peak in zip(("server", "reading"), both, strict=True):
                peaks.setdefault(f"{place}, {process}", []).append(peak)
        for other in ("sqlite", "postgresql"):
            there = tmp_path / f"{other}-{size}"
            target = (
                {}
                if other == "sqlite"
                else {"database__url": new_database(postgres_server, "memory_restored")}
            )
            blobs = s3 if place == "S3" else {"blobs__url": f"file://{data}/blobs"}
            peak = restored(name, there, own | blobs | target, f"from {place} into {other}")
            peaks.setdefault(f"into {other}", []).append(peak)
    for what, seen in peaks.items():
        assert max(seen) - seen[0] < MORE_MEGABYTES, (what, seen)
