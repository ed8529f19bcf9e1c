"""What is kept of records that are gone, or were otherwise before, is bounded."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select
from tests.packs.orchestrator.calls import BUILD, PM, PM_OF_ALICE, refused, result

from toolgate.packs.orchestrator.skills import retention
from toolgate.packs.orchestrator.skills.store import KEPT_DAYS
from toolgate.packs.orchestrator.sql import record_history, skills
from toolgate.packs.orchestrator.sql.tables import history, history_sizes, skill_versions
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

OF_TASK = {"scope_type": "task", "scope_id": BUILD}
SYSTEM = {"scope_type": "system"}


async def held(kit: Kit, scope_id: str = BUILD) -> tuple[int, int, int]:
    """Changes in the history of a scope, their characters, and what was counted of them."""
    there = select(func.count(), func.coalesce(func.sum(history.c.size), 0))
    there = there.where(history.c.scope_id == scope_id, ~history.c.pinned)
    counted = select(func.sum(history_sizes.c.characters))
    counted = counted.where(history_sizes.c.scope_id == scope_id)
    read = kit.app.gate.database.read
    rows, characters = await read(lambda one: one.execute(there).one())
    return rows, int(characters), int(await read(lambda one: one.scalar(counted)) or 0)


async def test_the_history_of_a_scope_is_bounded_whatever_its_keys(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_history, "KEPT_CHARACTERS", 20_000)
    value = {"value": "x" * 1_000, "value_type": "string"}
    await result(kit, "db.preference.create", PM, **SYSTEM, key="other", **value)
    for number in range(40):
        key = {**OF_TASK, "key": f"k{number}"}
        await result(kit, "db.preference.create", PM, **key, **value)
        await result(kit, "db.preference.delete", PM, **key)
    rows, characters, counted = await held(kit)
    assert rows == 16
    assert characters == counted <= 20_000
    last = await result(kit, "operator.preference.history", **OF_TASK, key="k39")
    assert [one["change"] for one in last["entries"]] == ["created", "deleted"]
    other = await result(kit, "operator.preference.history", **SYSTEM, key="other")
    assert len(other["entries"]) == 1, "another scope's history is its own"


async def test_the_history_tells_null_from_deletion(kit: Kit) -> None:
    key = {**OF_TASK, "key": "a", "value_type": "string"}
    await result(kit, "db.preference.create", PM, **key, value="x")
    await result(kit, "db.preference.update", PM, **key, value=None)
    await result(kit, "db.preference.delete", PM, **OF_TASK, key="a")
    await result(kit, "db.preference.create", PM, **key, value=None)
    told = (await result(kit, "operator.preference.history", **OF_TASK, key="a"))["entries"]
    assert [(one["old_type"], one["new_type"]) for one in told] == [
        (None, "string"),
        ("string", "string"),
        ("string", None),
        (None, "string"),
    ]
    assert [(one["change"], one["old"], one["new"]) for one in told] == [
        ("created", None, "x"),
        ("updated", "x", None),
        ("deleted", None, None),
        ("created", None, None),
    ]


async def test_a_skill_has_its_last_versions_and_a_deleted_one_fewer(kit: Kit) -> None:
    made = await result(kit, "skills.create", PM_OF_ALICE, task_id=BUILD, content="# x")
    which = {"task_id": BUILD, "skill_id": made["id"]}
    for number in range(skills.KEPT_VERSIONS + 2):
        await result(kit, "skills.update", PM_OF_ALICE, **which, content=f"# {number}")
    numbers = select(skill_versions.c.version).where(skill_versions.c.skill_id == made["id"])
    database = kit.app.gate.database
    kept = await database.read(lambda one: sorted(one.scalars(numbers)))
    assert kept == list(range(4, skills.KEPT_VERSIONS + 4))
    await result(kit, "skills.delete", PM_OF_ALICE, **which)
    assert await database.read(lambda one: sorted(one.scalars(numbers))) == kept[-5:]


async def versions(kit: Kit, *skill_ids: str) -> list[int | None]:
    kept = select(func.count()).select_from(skill_versions)
    return [
        await kit.app.gate.database.read(
            lambda one, which=which: one.scalar(kept.where(skill_versions.c.skill_id == which))
        )
        for which in skill_ids
    ]


async def test_versions_of_deleted_skills_are_forgotten_after_a_month(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    monkeypatch.setattr(retention, "PAUSE_SECONDS", 0)
    ids: list[str] = []
    for _ in range(3):
        made = await result(kit, "skills.create", PM_OF_ALICE, task_id=BUILD, content="# x")
        which = {"task_id": BUILD, "skill_id": made["id"]}
        for number in range(7):
            await result(kit, "skills.update", PM_OF_ALICE, **which, content=f"# {number}")
        ids.append(made["id"])
    for one in ids[:2]:
        await result(kit, "skills.delete", PM_OF_ALICE, task_id=BUILD, skill_id=one)
    assert await versions(kit, *ids) == [5, 5, 8]
    now = datetime.now(UTC)
    stored = kit.app.worlds["orchestrator"].world.skills
    soon = retention.VersionRetention(stored, lambda: now + timedelta(days=KEPT_DAYS - 1))
    late = retention.VersionRetention(stored, lambda: now + timedelta(days=KEPT_DAYS + 1))
    assert await soon.sweep() == 0
    with monkeypatch.context() as patch:
        patch.setattr(retention, "MAX_ROUNDS", 2)
        assert await late.sweep() == 4, "a sweep is bounded"
    assert await late.sweep() == 6
    assert await versions(kit, *ids) == [0, 0, 8]


async def test_what_is_kept_of_deleted_skills_is_bounded_by_scope(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "KEPT_OF_SCOPE", 20_000)
    ids: list[str] = []
    for number in range(8):
        text = f"# {number}\n" + "word " * 1_000
        new = {"task_id": BUILD, "content": text}
        made = await result(kit, "skills.create", PM_OF_ALICE, **new)
        if number == 7:  # what it was in another scope counts there
            moved = {"task_id": BUILD, "skill_id": made["id"], "scope": "project"}
            await result(kit, "skills.update", PM_OF_ALICE, **moved)
        await result(kit, "skills.delete", PM_OF_ALICE, task_id=BUILD, skill_id=made["id"])
        ids.append(made["id"])
    assert await versions(kit, *ids) == [0, 0, 0, 0, 0, 1, 1, 2]


async def test_skills_that_go_with_their_scope_keep_their_last_versions(kit: Kit) -> None:
    await result(kit, "operator.group.create", group_id="g", display_name="G")
    await result(kit, "operator.group.add_member", group_id="g", user_id="alice")
    new = {"task_id": BUILD, "content": "# x", "scope": "group", "scope_id": "g"}
    made = await result(kit, "skills.create", PM_OF_ALICE, **new)
    for number in range(7):
        which = {"task_id": BUILD, "skill_id": made["id"], "content": f"# {number}"}
        await result(kit, "skills.update", PM_OF_ALICE, **which)
    await result(kit, "operator.group.remove_member", group_id="g", user_id="alice")
    await result(kit, "operator.group.delete", group_id="g")
    assert await versions(kit, made["id"]) == [5]
    when = select(skill_versions.c.deleted_at).where(skill_versions.c.skill_id == made["id"])
    assert None not in await kit.app.gate.database.read(lambda one: one.scalars(when).all())


async def test_a_scope_has_so_many_skills(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "MAX_SKILLS", 2)
    new = {"task_id": BUILD, "content": "# x"}
    await result(kit, "skills.create", PM_OF_ALICE, **new)  # beside the one of the demo data
    error = await refused(kit, "skills.create", PM_OF_ALICE, **new)
    assert error["type"] == "quota_exceeded"
    assert "This scope has 2 skills, and may have 2." in error["message"]
    await result(kit, "skills.create", PM_OF_ALICE, **new, scope="project")


async def test_a_quota_that_is_used_up_is_no_matter_of_waiting(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_SKILLS", 0)
    refusal = await kit.call("skills.create", PM_OF_ALICE, task_id=BUILD, content="# x")
    assert (refusal.error_type, refusal.status) == ("quota_exceeded", 409)
