"""A backup made while a server writes is one moment, as the change log tells it."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.backups.conftest import NewDatabase
from tests.backups.moments import check_restored
from tests.databases import KINDS
from tests.faults.server import Crowd, served, until

from toolgate.cli.main import run
from toolgate.testing import opened_kit

CLIENTS = 6
BEFORE, MEANWHILE = 200, 150


def writing(request_id: str, number: int) -> tuple[str, dict[str, Any]]:
    """Each number creates a document, or changes one that others change too."""
    fields = {"number": number, "by": request_id}
    name = f"shared-{number % 7}" if number % 2 else request_id
    return "firestore_write", {"path": f"written/{name}", "document": fields}


async def prepare(data: Path, url: str) -> None:
    async with opened_kit(data, demo_data=True, database__url=url):
        pass


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_under_writes_is_one_moment(
    kind: str, empty: NewDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, url = tmp_path / "a", empty(kind)
    anyio.run(prepare, data, url)
    config = tmp_path / "toolgate.toml"
    config.write_text(f'[database]\nurl = "{url}"\n', encoding="utf-8")
    file = tmp_path / "made.gz"
    with (
        served(data, database__url=url) as running,
        Crowd(running, CLIENTS, 100_000, writing) as crowd,
    ):
        until(lambda: len(crowd.acknowledged) >= BEFORE)
        began, done = time.monotonic(), len(crowd.acknowledged)
        words = ["backup", str(file), "--config", str(config), "--data", str(data), "--json"]
        assert run(words) == 0
        until(lambda: len(crowd.acknowledged) >= done + MEANWHILE)
        rate = (len(crowd.acknowledged) - done) / (time.monotonic() - began)
        running.kill()
    assert crowd.refused == []
    told = json.loads(capsys.readouterr().out)
    print(f"{rate:.0f} writes a second, {told['rows']} rows")
    for target in ("sqlite", "postgresql"):
        check_restored(url, file, tmp_path / f"b-{target}", empty(target))
    capsys.readouterr()
