"""What a scope, a key's history and a task may hold is bounded, and told with the numbers."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select
from tests.packs.orchestrator.calls import BUILD, PM, PM_OF_ALICE, refused, result

from toolgate.packs.orchestrator.sql.tables import history, preferences
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024
OF_TASK = {"scope_type": "task", "scope_id": BUILD}
THEN = "2026-01-05T09:00:00.000000Z"


def text(size: int) -> dict[str, Any]:
    """A value of so many bytes as JSON."""
    return {"value": "x" * (size - 2), "value_type": "string"}


async def store(kit: Kit, number: int, size: int) -> None:
    """Preferences as an older version took them."""
    value = f'"{"x" * (size - 2)}"'
    rows = [
        {
            **OF_TASK,
            "key": f"bulk.k{one}",
            "value": value,
            "value_type": "string",
            "size": size,
            "version": 1,
            "deleted": False,
            "updated_at": THEN,
            "updated_by": "x",
        }
        for one in range(number)
    ]
    await kit.app.gate.database.write(lambda one: one.execute(insert(preferences), rows))


async def test_a_value_of_a_preference_has_64_kib(kit: Kit) -> None:
    key = {**OF_TASK, "key": "a"}
    error = await refused(kit, "db.preference.create", PM, **key, **text(64 * 1024 + 1))
    assert (error["type"], "65536" in error["message"]) == ("size_limit_exceeded", True)
    await result(kit, "db.preference.create", PM, **key, **text(64 * 1024))
    await result(kit, "db.system_setting.create", PM, key="a", **text(MIB))


async def test_a_scope_holds_a_thousand_preferences(kit: Kit) -> None:
    await store(kit, 1000, 3)
    error = await refused(kit, "db.preference.create", PM, **OF_TASK, key="a", **text(3))
    assert error["type"] == "quota_exceeded"
    assert error["message"].startswith("This scope has 1000 records, and may have 1000.")
    await result(kit, "db.preference.update", PM, **OF_TASK, key="bulk.k1", **text(9))
    await result(kit, "db.preference.delete", PM, **OF_TASK, key="bulk.k1")
    await result(kit, "db.preference.create", PM, **OF_TASK, key="a", **text(3))
    error = await refused(kit, "db.preference.create", PM, **OF_TASK, key="bulk.k1", **text(3))
    assert error["type"] == "quota_exceeded", "a key that was deleted is one more again"
    other = {"scope_type": "user", "scope_id": "alice"}
    await result(kit, "db.preference.create", **other, key="a", **text(3))


async def test_the_values_of_a_scope_are_bounded_together(kit: Kit) -> None:
    size = 64 * 1024
    for number in range(8):
        who = (PM, PM_OF_ALICE)[number % 2]
        await result(kit, "db.preference.create", who, **OF_TASK, key=f"a{number}", **text(size))
    error = await refused(kit, "db.preference.create", PM, **OF_TASK, key="b", **text(3))
    assert error["type"] == "quota_exceeded"
    assert "524288 bytes and this one 3" in error["message"]
    await result(kit, "db.preference.update", PM, **OF_TASK, key="a0", **text(size - 3))
    await result(kit, "db.preference.create", PM, **OF_TASK, key="b", **text(3))
    error = await refused(kit, "db.preference.update", PM, **OF_TASK, key="b", **text(4))
    assert error["type"] == "quota_exceeded"
    await result(kit, "db.preference.update", PM, **OF_TASK, key="b", **text(2))


async def test_the_history_keeps_the_last_hundred_versions_of_a_key(kit: Kit) -> None:
    key = {**OF_TASK, "key": "a"}
    await result(kit, "db.preference.create", PM, **OF_TASK, key="b", **text(3))
    await result(kit, "db.preference.create", PM, **key, **text(3))
    for _ in range(104):
        await result(kit, "db.preference.update", PM, **key, **text(3))
    kept = select(func.count(), func.min(history.c.version), func.max(history.c.version))
    of_a, of_b = [
        await kit.app.gate.database.read(
            lambda one, name=name: tuple(one.execute(kept.where(history.c.key == name)).one())
        )
        for name in ("a", "b")
    ]
    assert (of_a, of_b) == ((100, 6, 105), (1, 1, 1))


@pytest.mark.parametrize(
    ("setting", "numbers"),
    [("task_artifacts", "2 other artifacts, and may have 2"), ("task_artifact_bytes", "have 7")],
    ids=["files", "bytes"],
)
async def test_a_task_holds_so_many_artifacts(
    tmp_path: Path, database_url: str, setting: str, numbers: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    settings[f"orchestrator__{setting}"] = {"task_artifacts": 2, "task_artifact_bytes": 7}[setting]
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        task = (await result(kit, "operator.task.create", prompt="x", user_id="alice"))["id"]
        for path, content in (("a", "YWFh"), ("b", "YWFh")):
            given = {"task_id": task, "path": path, "content_bytes_base64": content}
            await result(kit, "artifact.put", PM, **given)
        blobs = len(stored_files(tmp_path))
        given = {"task_id": task, "path": "c", "content_bytes_base64": "YWFh"}
        error = await refused(kit, "artifact.put", PM, **given)
        assert error["type"] == "quota_exceeded"
        assert numbers in error["message"]
        assert setting in error["message"]
        assert len(stored_files(tmp_path)) == blobs, "nothing was written"
        await result(kit, "artifact.put", PM, **{**given, "path": "b"})


def stored_files(folder: Path) -> list[Path]:
    return [one for one in (folder / "blobs").rglob("*") if one.is_file()]
