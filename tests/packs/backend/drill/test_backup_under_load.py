"""300 writes a second go on while backups are made, and each backup is one moment.

By the command and by the tool, from both kinds of database into both kinds. RATE says how many
writes are offered each second, MEGABYTES how much is there before.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from tests.backups.moments import check_restored
from tests.databases import KINDS, new_database
from tests.faults.server import served, until
from tests.packs.backend.offered_writes import OfferedWrites

from toolgate.ports.documents import Create
from toolgate.testing import opened_kit

pytestmark = pytest.mark.timeout(3600)

RATE = int(os.environ.get("RATE", "330"))
WANTED = 300
MEGABYTES = int(os.environ.get("MEGABYTES", "200"))
EACH = 10_000
ALONE_SECONDS = 10


async def fill(data: Path, url: str) -> None:
    """Documents that hardly can be packed."""
    async with opened_kit(data, packs__enabled=["backend"], database__url=url) as kit:
        documents = kit.app.documents.of("backend")
        for start in range(0, MEGABYTES * 1_000_000 // EACH, 100):
            async with kit.app.gate.database.transaction() as tx:
                some = [
                    Create("large", f"l{start + one}", {"text": os.urandom(EACH // 2).hex()})
                    for one in range(100)
                ]
                await documents.write(tx, *some)


@pytest.mark.parametrize("source", KINDS)
def test_a_backup_under_300_writes_a_second(
    source: str,
    postgres_server: str,
    tmp_path: Path,
) -> None:
    def empty(kind: str, name: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/{name}/toolgate.db"
        return new_database(postgres_server, f"load_{name.replace('-', '_')}")

    data, url = tmp_path / "a", empty(source, "a")
    anyio.run(fill, data, url)
    config = tmp_path / "toolgate.toml"
    config.write_text(f'[packs]\nenabled = ["backend"]\n[database]\nurl = "{url}"\n', "utf-8")
    file, stored = tmp_path / "made.gz", tmp_path / "stored.gz"
    with (
        served(data, database__url=url, packs__enabled='["backend"]') as running,
        OfferedWrites(running.port, RATE) as writes,
    ):
        until(lambda: writes.count > WANTED)
        words = ["backup", str(file), "--config", str(config), "--data", str(data)]

        def by_command() -> None:
            subprocess.run([sys.executable, "-m", "toolgate", *words], check=True)

        def by_tool() -> str:
            answer = running.call("create_backup")
            assert answer.status == 200, answer.text
            return answer.body["name"]

        writes.during("without a backup", lambda: time.sleep(ALONE_SECONDS))
        rates = [writes.during("toolgate backup", by_command)]
        name: list[str] = []
        rates.append(writes.during("create_backup", lambda: name.append(by_tool())))
        done = writes.count
        until(lambda: writes.count > done + WANTED)
        writes.stop()
        running.kill()
    print("load average", os.getloadavg(), flush=True)
    assert writes.refused == []
    parts = sorted((data / "blobs" / "backend" / "backups" / name[0]).glob("part-*"))
    stored.write_bytes(b"".join(one.read_bytes() for one in parts))
    blobs = f'[packs]\nenabled = ["backend"]\n[blobs]\nurl = "file://{data}/blobs"\n'
    for target in ("sqlite", "postgresql"):
        one, other = f"b-{target}", f"c-{target}"
        check_restored(url, file, tmp_path / one, empty(target, one))
        there = empty(target, other)
        check_restored(url, stored, tmp_path / other, there, named=name[0], settings=blobs)
    assert min(rates) >= WANTED, rates
