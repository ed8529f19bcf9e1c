"""A backup, read into an empty database of either kind, is the database it was made of."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.backups.conftest import NewDatabase
from tests.backups.databases import content_of, indexes_of, without_own_rows
from tests.backups.odd_values import fill

from toolgate.cli.main import run
from toolgate.gate.principal import Role
from toolgate.gate.verification import verify
from toolgate.identity.users import Users
from toolgate.ports.documents import Filter, Operator, Query
from toolgate.testing import Kit, opened_kit

PERSON = "_test-basic"
PACKS = ["appdata", "backend", "content", "orchestrator"]
PROJECT = "00000000-0000-4000-a000-000000000001"
SEARCHED = ("context", "embed", "zzzz")


def settings_file(folder: Path, url: str, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "toolgate.toml"
    packs = json.dumps(more.get("packs", PACKS))
    file.write_text(f'[packs]\nenabled = {packs}\n[database]\nurl = "{url}"\n', encoding="utf-8")
    return file


async def used_database(folder: Path, url: str) -> dict[str, Any]:
    """A database with demo data, odd values, calls, seals and a key; the key and the head."""
    async with opened_kit(
        folder, writes=True, demo_data=True, packs__enabled=PACKS, database__url=url
    ) as kit:
        await fill(kit)
        key = await kit.app.keys.create(role=Role.USER, user_id=PERSON)
        users = Users(kit.app.documents.of_users(), kit.app.gate.database)
        private = await users.give_private_key(PERSON, lambda _: None, replacing=True)
        for _ in range(30):
            assert (await kit.call("health_check")).status == 200
        await kit.app.gate.audit.flush()
        await kit.app.sealer.seal()
        verdict = await verify(kit.app.gate.database)
        assert verdict.rows == 30
        made = {"key": key.key, "head": verdict.head, "found": await searched(kit)}
        return made | {"private": private, "counts": await counted(kit)}


async def searched(kit: Kit) -> list[Any]:
    """Answers that need indexes: of fields of documents, and of texts of content."""
    large = Query("odd", [Filter("number", Operator.GREATER, 1)])
    documents = await kit.app.documents.of("appdata").query(large)
    assert len(documents) == 4
    texts = [await kit.call("search_entities", projectId=PROJECT, search=one) for one in SEARCHED]
    assert texts[0].body["pagination"]["total"] > 0
    return [[one.id for one in documents], *(one.body for one in texts)]


async def counted(kit: Kit) -> dict[str, Any]:
    """The numbers of `get_stats`."""
    stats = (await kit.call("get_stats")).body
    assert stats["users"]["total"] > 0
    return {name: stats[name] for name in ("users", "notifications", "subscriptions")}


def test_every_row_is_the_same_in_either_kind(
    source: str, target: str, empty: NewDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = empty(source), empty(target)
    made = anyio.run(used_database, tmp_path / "before", before)
    file = tmp_path / "backup.jsonl.gz"
    config = settings_file(tmp_path / "before", before)
    assert run(["backup", str(file), "--config", str(config), "--data", str(tmp_path / "a")]) == 0
    there = without_own_rows(content_of(before))
    restored = settings_file(tmp_path / "after", after)
    options = ["--config", str(restored), "--data", str(tmp_path / "after")]
    assert run(["restore", str(file), *options]) == 0
    found = without_own_rows(content_of(after))
    assert found.keys() == there.keys()
    for table, rows in there.items():
        assert found[table] == rows, table
    if source == target:
        assert indexes_of(after) == indexes_of(before)
    assert len(there["documents"]) > 50
    assert len(there["document_index"]) > 100
    assert len(there["content_totals"]) > 3
    assert run(["audit", "verify", "--head", made["head"], *options]) == 0
    anyio.run(goes_on, tmp_path / "after", after, made, there)
    capsys.readouterr()


async def goes_on(folder: Path, url: str, made: dict[str, Any], there: dict[str, Any]) -> None:
    """Keys, searches, counters and numbers work as before."""
    async with opened_kit(folder, writes=True, packs__enabled=PACKS, database__url=url) as kit:
        for key in (made["key"], made["private"]):
            caller = await kit.app.credentials.holder(key)
            assert caller is not None
            assert caller.user_id == PERSON
        assert await searched(kit) == made["found"]
        assert await counted(kit) == made["counts"]
        asked = {"collection": "apps", "data": {"name": "new"}}
        written = await kit.send("create_document", asked)
        assert written.status == 200, written.text
        await kit.app.gate.audit.flush()
        await kit.app.sealer.seal()
        assert (await verify(kit.app.gate.database)).findings == []
    now = content_of(url)
    for table in ("documents", "changes", "audit"):
        last = max(row["seq"] for row in there[table])
        added = [row["seq"] for row in now[table] if row["seq"] > last]
        assert added, table
        assert len({row["seq"] for row in now[table]}) == len(now[table])
