"""A backup made while a server writes is one moment, as the change log tells it."""

import gzip
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.backups.conftest import NewDatabase
from tests.backups.databases import content_of
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


def state_at(url: str, moment: dict[str, Any], changes: list[Any]) -> dict[str, Any]:
    """What the log of the database itself says was there at that moment."""
    if url.startswith("sqlite"):
        last = max((one["seq"] for one in changes), default=0)
        asked = (
            "SELECT path, after FROM changes WHERE seq <= ? AND namespace = 'backend' ORDER BY seq"
        )
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            rows = [
                (path, after and json.loads(after))
                for path, after in connection.execute(asked, [last])
            ]
    else:
        asked = (
            "SELECT path, after FROM changes WHERE namespace = 'backend' AND "
            "pg_visible_in_snapshot(transaction_id::text::xid8, %s::pg_snapshot) ORDER BY seq"
        )
        with psycopg.connect(url, row_factory=dict_row) as connection:
            found = connection.execute(asked, [moment["snapshot"]]).fetchall()
            rows = [(row["path"], row["after"]) for row in found]
    state = dict(rows)
    return {path: after for path, after in state.items() if path.startswith("written/")}


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
        check(url, file, tmp_path / f"b-{target}", empty(target))
    capsys.readouterr()


def check(source: str, file: Path, folder: Path, url: str) -> None:
    """Restored, it is what the source was then: documents, audit rows and seals."""
    folder.mkdir()
    config = folder / "toolgate.toml"
    config.write_text(f'[database]\nurl = "{url}"\n', encoding="utf-8")
    options = ["--config", str(config), "--data", str(folder)]
    assert run(["restore", str(file), *options]) == 0
    content = content_of(url)
    with gzip.open(file) as opened:
        moment = json.loads(opened.readline())["moment"]
    documents = {
        f"{row['collection']}/{row['id']}": row["fields"]
        for row in content["documents"]
        if row["namespace"] == "backend" and row["collection"] == "written"
    }
    assert len(documents) > 50
    assert documents == state_at(source, moment, content["changes"])
    now = content_of(source)
    assert len(now["documents"]) > len(content["documents"]), "writes went on"
    audited = [row for row in content["audit"] if row["tool_name"] != "restore"]
    ids = {row["id"]: row for row in now["audit"]}
    # Every write has its row, and every row is the source's; seals may have come since.
    calls = {row["call"] for row in content["changes"] if row["call"]}
    assert calls <= {row["id"] for row in audited}
    for row in audited:
        assert {**ids[row["id"]], "seal": None} == {**row, "seal": None}
    assert run(["audit", "verify", *options]) == 0
