"""A user or group of an id that was in use before is somebody else, and finds nothing of old."""

from typing import Any

import pytest
from sqlalchemy import func, insert, select
from tests.packs.orchestrator.calls import BUILD, PM_OF_ALICE, PM_OF_BOB, SORT, refused, result

from toolgate.gate.principal import AgentType, of_agent
from toolgate.packs.orchestrator.sql.tables import (
    access_rules,
    preferences,
    skill_versions,
    skills,
)
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

PM_OF_DAVE = of_agent(AgentType.PM, "pm-dave", "dave")
OF_DAVE = {"scope_type": "user", "scope_id": "dave"}
OF_WRITERS = {"scope_type": "group", "scope_id": "writers"}
NOTE = {"key": "custom.note", "value": "private", "value_type": "string"}
DENY = {"effect": "deny", "resource_pattern": "db.preference.*"}


async def create_user(kit: Kit) -> None:
    await result(kit, "operator.user.create", user_id="dave", display_name="Dave")


async def create_group(kit: Kit, *members: str) -> None:
    await result(kit, "operator.group.create", group_id="writers", display_name="Writers")
    for one in members:
        await result(kit, "operator.group.add_member", group_id="writers", user_id=one)


async def delete_group(kit: Kit, *members: str) -> None:
    for one in members:
        await result(kit, "operator.group.remove_member", group_id="writers", user_id=one)
    await result(kit, "operator.group.delete", group_id="writers")


async def entries(kit: Kit, who: Any, place: dict[str, str]) -> list[Any]:
    return (await result(kit, "db.preference.list", who, **place))["entries"]


async def rows_of(kit: Kit, table: Any, **where: Any) -> int:
    wanted = select(func.count()).select_from(table)
    for name, value in where.items():
        wanted = wanted.where(table.c[name] == value)
    return await kit.app.gate.database.read(lambda one: one.scalar(wanted) or 0)


async def test_a_new_user_has_no_preferences_of_the_old_one(kit: Kit) -> None:
    await create_user(kit)
    await result(kit, "db.preference.create", PM_OF_DAVE, **OF_DAVE, **NOTE)
    await result(kit, "operator.user.delete", user_id="dave")
    await create_user(kit)
    assert await entries(kit, PM_OF_DAVE, OF_DAVE) == []
    again = await result(kit, "db.preference.create", PM_OF_DAVE, **OF_DAVE, **NOTE)
    assert again["version"] == 3, "no version is ever used twice"
    told = await result(kit, "operator.preference.history", **OF_DAVE, key=NOTE["key"])
    changes = [(one["version"], one["old"], one["new"]) for one in told["entries"]]
    assert changes == [(1, None, "private"), (2, "private", None), (3, None, "private")]
    assert told["entries"][1]["reason"] == "the user was deleted"


async def test_a_new_user_is_not_subject_to_rules_about_the_old_one(kit: Kit) -> None:
    await create_user(kit)
    about = {"subject_type": "user", "subject_id": "dave"}
    await result(kit, "operator.access_rule.create", **DENY, **about)
    await kit.app.gate.switches.read_if_changed()
    error = await refused(kit, "db.preference.list", PM_OF_DAVE, **OF_DAVE)
    assert error["type"] == "access_denied"
    await result(kit, "operator.user.delete", user_id="dave")
    await create_user(kit)
    await kit.app.gate.switches.read_if_changed()
    assert await rows_of(kit, access_rules, **about) == 0
    assert await entries(kit, PM_OF_DAVE, OF_DAVE) == []


async def test_a_new_group_has_nothing_of_the_old_one(kit: Kit) -> None:
    await create_group(kit, "alice")
    await result(kit, "db.preference.create", PM_OF_ALICE, **OF_WRITERS, **NOTE)
    skill = {"content": "# Ours", "name": "Ours", "scope": "group", "scope_id": "writers"}
    made = await result(kit, "skills.create", PM_OF_ALICE, task_id=BUILD, **skill)
    about = {"subject_type": "group", "subject_id": "writers"}
    await result(kit, "operator.access_rule.create", **DENY, **about)
    await delete_group(kit, "alice")
    assert await rows_of(kit, access_rules, **about) == 0
    await create_group(kit, "bob")
    assert await entries(kit, PM_OF_BOB, OF_WRITERS) == []
    listed = await result(kit, "skills.list", PM_OF_BOB, task_id=SORT)
    assert "Ours" not in [one["name"] for one in listed["entries"]]
    assert await rows_of(kit, skills, id=made["id"]) == 0
    assert await rows_of(kit, skill_versions, skill_id=made["id"]) == 1


async def test_what_an_older_release_left_behind_is_not_found_either(kit: Kit) -> None:
    left = {
        **OF_DAVE,
        "key": NOTE["key"],
        "value": '"private"',
        "value_type": "string",
        "size": 9,
        "version": 1,
        "deleted": False,
        "updated_at": "2026-01-05T09:00:00.000000Z",
        "updated_by": "x",
    }
    await kit.app.gate.database.write(lambda one: one.execute(insert(preferences), left))
    await create_user(kit)
    assert await entries(kit, PM_OF_DAVE, OF_DAVE) == []


async def test_a_deleted_project_leaves_no_preferences_rules_and_skills(kit: Kit) -> None:
    made = await result(kit, "operator.project.create", slug="short", display_name="Short")
    place = {"scope_type": "project", "scope_id": made["id"]}
    about = {"subject_type": "project", "subject_id": made["id"]}
    await result(kit, "db.preference.create", **place, **NOTE)
    await result(kit, "operator.access_rule.create", **DENY, **about)
    await result(kit, "operator.project.delete", project_id=made["id"])
    assert await rows_of(kit, preferences, **place, deleted=False) == 0
    assert await rows_of(kit, access_rules, **about) == 0


async def test_a_deletion_that_is_refused_deletes_nothing(kit: Kit) -> None:
    await create_group(kit, "alice")
    await result(kit, "db.preference.create", PM_OF_ALICE, **OF_WRITERS, **NOTE)
    error = await refused(kit, "operator.group.delete", group_id="writers")
    assert error["type"] == "conflict"
    assert len(await entries(kit, PM_OF_ALICE, OF_WRITERS)) == 1
