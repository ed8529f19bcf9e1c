"""Whether a restored backup is what its source was at one moment, as the change log tells it."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from tests.backups.databases import content_of

from toolgate.cli.main import run


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
        with psycopg.connect(url) as connection:
            rows = [*connection.execute(asked, [moment["snapshot"]])]
    state: dict[str, Any] = dict(rows)
    return {path: after for path, after in state.items() if path.startswith("written/")}


def check_restored(
    source: str, file: Path, folder: Path, url: str, *, named: str = "", settings: str = ""
) -> None:
    """Restored, it is what the source was then: documents, audit rows and seals.

    `named`: the name of the stored backup that the file is a copy of, and that is restored.
    """
    folder.mkdir()
    config = folder / "toolgate.toml"
    config.write_text(f'[database]\nurl = "{url}"\n{settings}', encoding="utf-8")
    options = ["--config", str(config), "--data", str(folder)]
    assert run(["restore", named or str(file), *options]) == 0
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
    # The call that makes the backup has not ended in it.
    own = ("restore", "create_backup")
    audited = [row for row in content["audit"] if row["tool_name"] not in own]
    ids = {row["id"]: row for row in now["audit"]}
    # Every write has its row, and every row is the source's; seals may have come since.
    calls = {row["call"] for row in content["changes"] if row["call"]}
    assert calls <= {row["id"] for row in audited}
    for row in audited:
        assert {**ids[row["id"]], "seal": None} == {**row, "seal": None}
    assert run(["audit", "verify", *options]) == 0
