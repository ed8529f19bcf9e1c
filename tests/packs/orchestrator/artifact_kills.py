"""A server that is killed while artifacts are put: what is there afterwards."""

import base64
import hashlib
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from tests.faults.server import Crowd, served, until

from toolgate.packs.orchestrator.artifacts.reaper import GRACE_SECONDS, Reaper
from toolgate.packs.orchestrator.world import OrchestratorWorld
from toolgate.testing import opened_kit

TASK = "00000000-0000-4000-8000-0000000000b1"
PACKS = "orchestrator"
PATHS = 5
CLIENTS = 4


def content_of(request_id: str) -> bytes:
    """Different in length and content for every request."""
    digest = hashlib.sha256(request_id.encode()).digest()
    return digest * (500 + digest[0] * 40)


def putting(request_id: str, number: int) -> tuple[str, dict[str, Any]]:
    content = base64.b64encode(content_of(request_id)).decode()
    path = f"p{number % PATHS}"
    return "artifact.put", {"task_id": TASK, "path": path, "content_bytes_base64": content}


async def prepare(data: Path) -> None:
    async with opened_kit(data, demo_data=True, packs__enabled=[PACKS]):
        pass


def kill_after(data: Path, acknowledged: int, wait: float = 0.0) -> int:
    """Serve, kill once so many puts are acknowledged and a moment has passed; how many were."""
    with (
        served(data, packs__enabled=PACKS) as running,
        Crowd(running, CLIENTS, 100_000, putting) as crowd,
    ):
        until(lambda: len(crowd.acknowledged) >= acknowledged)
        time.sleep(wait)
        running.kill()
    assert crowd.refused == []
    return len(crowd.acknowledged)


@dataclass(frozen=True, slots=True)
class Left:
    """What a killed server left."""

    rows: dict[str, tuple[int, str]]
    """Size and checksum by blob."""
    puts: int
    """Audit rows of puts that were done."""
    folder: Path

    @property
    def blobs(self) -> set[str]:
        """The files of whole blobs."""
        return {
            str(file.relative_to(self.folder))
            for file in self.folder.rglob("*")
            if file.is_file() and "#" not in file.name
        }

    def unfinished(self) -> list[Path]:
        return list(self.folder.rglob("*#*"))

    def check_rows(self) -> None:
        """Every row has its blob, whole."""
        for ref, (size, checksum) in self.rows.items():
            data = (self.folder / ref).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (size, checksum)


def left_in(data: Path) -> Left:
    with closing(sqlite3.connect(data / "toolgate.db")) as connection:
        rows = connection.execute(
            "SELECT storage_ref, size_bytes, checksum_sha256 FROM orchestrator_artifacts"
        )
        found = {ref: (size, checksum) for ref, size, checksum in rows}
        (puts,) = connection.execute(
            "SELECT count(*) FROM audit WHERE tool_name = 'artifact.put' AND status = 'success'"
        ).fetchone()
    return Left(found, puts, data / "blobs" / "orchestrator")


async def reap(data: Path) -> int:
    """What the reaper of a server removes that is started long after."""
    async with opened_kit(data, packs__enabled=[PACKS]) as kit:
        world: OrchestratorWorld = kit.app.worlds[PACKS].world
        later = GRACE_SECONDS + 60
        folder = world.blob_names.folder
        reaper = Reaper(world.blobs, world.artifacts, folder, clock=lambda: time.time() + later)
        return await reaper.sweep()


def check_kill(data: Path, acknowledged: int, wait: float = 0.0) -> str:
    """Kill a server that stores artifacts, and look at what it left."""
    anyio.run(prepare, data)
    before = left_in(data).puts
    answered = kill_after(data, acknowledged, wait)
    left = left_in(data)
    left.check_rows()
    assert left.puts - before >= answered, "what is acknowledged has its audit row"
    orphans, unfinished = left.blobs - left.rows.keys(), left.unfinished()
    assert anyio.run(reap, data) == len(orphans) + len(unfinished)
    after = left_in(data)
    after.check_rows()
    assert after.blobs == set(after.rows)
    assert after.unfinished() == []
    return f"{answered} acknowledged, {len(orphans)} without a row, {len(unfinished)} unfinished"
