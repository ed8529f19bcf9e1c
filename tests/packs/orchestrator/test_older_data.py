"""What the previous version stored is there, and reads as before."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, select, text
from tests.databases import upgrade_all
from tests.packs.orchestrator.calls import ABSENT, ID, result

from toolgate.db.engine import Database
from toolgate.packs.orchestrator.sql.tables import metadata, skill_versions
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

THEN = "2026-01-05T09:00:00.000000Z"
NOTES = ID.format("d1")
CHANGE = {
    "scope_type": "system",
    "scope_id": "",
    "key": "a",
    "version": 1,
    "old": "1",
    "new": '"x"',
}
SINCE = (
    "DROP INDEX ix_orchestrator_skill_versions_scope_scope_id_deleted_at",
    "DROP INDEX ix_orchestrator_record_history_oldest",
    "ALTER TABLE orchestrator_record_history DROP COLUMN size",
    "ALTER TABLE orchestrator_record_history DROP COLUMN reserved",
    "ALTER TABLE orchestrator_record_history DROP COLUMN pinned",
    "DROP TABLE orchestrator_history_sizes",
    "ALTER TABLE orchestrator_settings DROP COLUMN owner",
    "ALTER TABLE orchestrator_preferences DROP COLUMN owner",
    "DROP INDEX ix_orchestrator_skill_versions_deleted_at",
    "ALTER TABLE orchestrator_skill_versions DROP COLUMN deleted_at",
    "ALTER TABLE orchestrator_record_history DROP COLUMN old_type",
    "ALTER TABLE orchestrator_record_history DROP COLUMN new_type",
    "DROP TABLE orchestrator_quarantined_texts",
    "UPDATE orchestrator_version SET version_num = '0005'",
)
"""What leads back to the tables of the version before."""


def store_older(connection: Connection) -> None:
    for statement in SINCE:
        connection.execute(text(statement))
    names = [*CHANGE, "changed_by", "changed_at"]
    values = {**CHANGE, "changed_by": "x", "changed_at": THEN}
    into = f"INSERT INTO orchestrator_record_history ({', '.join(names)})"
    connection.execute(text(f"{into} VALUES ({', '.join(':' + one for one in names)})"), values)
    version = {
        "skill_id": ABSENT,
        "version": 1,
        "name": "Gone",
        "content": "x",
        "scope": "global",
        "scope_id": "",
        "changed_by": "x",
        "changed_at": THEN,
    }
    connection.execute(insert(skill_versions), version)


def differences(connection: Connection) -> list[Any]:
    def ours(_: Any, name: str | None, kind: str, *__: Any) -> bool:
        return kind != "table" or (
            str(name).startswith("orchestrator_") and name != "orchestrator_version"
        )

    context = MigrationContext.configure(connection, opts={"include_object": ours})
    return compare_metadata(context, metadata)


async def test_data_of_the_version_before_opens_as_before(
    tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        await kit.app.gate.database.write(store_older)
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    database = Database(database_url)
    await upgrade_all(database)
    assert await database.read(differences) == []
    deleted = select(skill_versions.c.skill_id, skill_versions.c.deleted_at)
    found = {
        row.skill_id: row.deleted_at
        for row in await database.read(lambda c: c.execute(deleted).all())
    }
    assert found[NOTES] is None
    assert found[ABSENT] >= began, "its time begins with the upgrade"
    await database.close()
    async with opened_kit(tmp_path, **settings) as kit:
        told = await result(kit, "operator.preference.history", scope_type="system", key="a")
        (change,) = told["entries"]
        assert (change["old"], change["new"], change["change"]) == (1, "x", "updated")
        assert (change["old_type"], change["new_type"]) == (None, None)
