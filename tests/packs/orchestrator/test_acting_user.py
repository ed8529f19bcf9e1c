"""Who acts is the user of the key: a task that it reaches makes nobody its owner."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    ID,
    OF_ALICE,
    PA_OF_ALICE,
    PA_OF_BOB,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    WORKER,
    refused,
    result,
)

from toolgate.packs.orchestrator.sql.tables import members
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

NOTES = ID.format("d1")
"""A skill of alice alone. Her task BUILD is in a project that bob reads."""
STYLE = "output.summary_style"
NO_SKILL = {"type": "not_found", "message": "Skill not found"}


async def names(kit: Kit, who: Any, task: str) -> set[str]:
    page = await result(kit, "skills.list", who, task_id=task)
    return {one["name"] for one in page["entries"]}


@pytest.mark.parametrize("skill", [NOTES, ABSENT], ids=["foreign", "absent"])
async def test_a_task_one_reads_opens_none_of_its_owners_skills(kit: Kit, skill: str) -> None:
    given = {"task_id": BUILD, "skill_id": skill}
    assert await refused(kit, "skills.get", PM_OF_BOB, **given) == NO_SKILL
    assert await refused(kit, "skills.update", PM_OF_BOB, **given, name="Mine") == NO_SKILL
    assert await refused(kit, "skills.delete", PM_OF_BOB, **given) == NO_SKILL
    assert "Release notes" not in await names(kit, PM_OF_BOB, BUILD)
    assert "Release notes" in await names(kit, PM_OF_ALICE, BUILD)


async def test_a_skill_belongs_to_who_made_it_whatever_the_task(kit: Kit) -> None:
    made = await result(kit, "skills.create", PM_OF_BOB, task_id=BUILD, content="# x", name="His")
    assert (made["owner"], made["scope_id"]) == ("bob", "bob")
    assert "His" in await names(kit, PM_OF_BOB, SORT)
    assert "His" not in await names(kit, PM_OF_ALICE, BUILD)
    error = await refused(
        kit, "skills.create", PM_OF_BOB, task_id=BUILD, content="# x", scope_id="alice"
    )
    assert error["type"] == "not_found"


async def test_a_group_counts_where_the_caller_is_a_member(kit: Kit) -> None:
    given: dict[str, Any] = {"content": "# x", "scope": "group", "scope_id": "designers"}
    made = await result(kit, "skills.create", PM_OF_BOB, task_id=BUILD, **given)
    assert made["owner"] == "bob"
    changed = {"task_id": BUILD, "skill_id": made["id"], "name": "Ours"}
    assert await refused(kit, "skills.update", PM_OF_ALICE, **changed) == NO_SKILL
    joined = insert(members).values(user_id="alice", group_id="designers")
    await kit.app.gate.database.write(lambda one: one.execute(joined))
    error = await refused(kit, "skills.update", PM_OF_ALICE, **changed)
    assert (error["type"], "owner" in error["message"]) == ("access_denied", True)


@pytest.mark.parametrize("who", [PM, ADMIN], ids=["system", "admin"])
async def test_without_a_user_of_ones_own_the_tasks_user_acts(kit: Kit, who: Any) -> None:
    made = await result(kit, "skills.create", who, task_id=SORT, content="# x", name="Own")
    assert made["owner"] == "bob"
    given = {"task_id": BUILD, "skill_id": NOTES}
    assert (await result(kit, "skills.update", who, **given, name="N"))["owner"] == "alice"


async def test_what_a_task_prefers_shows_nothing_of_another_person(kit: Kit) -> None:
    joined = insert(members).values(user_id="alice", group_id="designers")
    await kit.app.gate.database.write(lambda one: one.execute(joined))
    typed = {"value_type": "string", "value": "x"}
    group = {"scope_type": "group", "scope_id": "designers", "key": "custom.of_group"}
    task = {"scope_type": "task", "scope_id": BUILD, "key": "custom.of_task"}
    for scope in (group, task):
        await result(kit, "db.preference.create", **scope, **typed)
    personal = {STYLE, "custom.of_group"}
    shared = {"custom.of_task", "language.preferred", "standards.markdown.line_length"}
    for who in (ADMIN, PM, PM_OF_ALICE, PA_OF_ALICE):
        found = await result(kit, "db.preference.effective", who, task_id=BUILD)
        assert found["effective"].keys() == personal | shared, who.id
    for who in (PM_OF_BOB, PA_OF_BOB):
        found = await result(
            kit, "db.preference.effective", who, task_id=BUILD, include_sources=True
        )
        assert found["effective"].keys() == shared, who.id
        assert {one["scope_type"] for one in found["sources"]} == {"task", "project", "system"}
    own = await result(kit, "db.preference.effective", PM_OF_BOB, task_id=SORT)
    assert "custom.of_group" in own["effective"]


@pytest.mark.parametrize(
    ("scope_type", "there", "absent"),
    [("user", "alice", "eve"), ("group", "designers", "eves")],
    ids=["user", "group"],
)
async def test_without_a_user_there_are_no_preferences_of_people(
    kit: Kit, scope_type: str, there: str, absent: str
) -> None:
    typed = {"value_type": "string", "value": "x"}
    given = {"scope_type": scope_type, "scope_id": there, "key": "custom.a"}
    await result(kit, "db.preference.create", **given, **typed)
    told: list[str] = []
    for scope_id in (there, absent):
        scope = {"scope_type": scope_type, "scope_id": scope_id}
        assert await result(kit, "db.preference.list", PM, **scope) == {"entries": []}
        for tool, more in (("get", {}), ("create", typed), ("update", typed), ("delete", {})):
            error = await refused(kit, f"db.preference.{tool}", PM, **scope, key="custom.a", **more)
            assert error["type"] == "not_found", tool
            told.append(error["message"].replace(scope_id, ""))
    assert told[:4] == told[4:]


async def test_without_a_user_the_tasks_own_preferences_are_written(kit: Kit) -> None:
    scope = {"scope_type": "task", "scope_id": SORT, "key": "custom.a"}
    await result(kit, "db.preference.create", PM, **scope, value_type="string", value="x")
    assert (await result(kit, "db.preference.get", PM, **scope))["value"] == "x"
    found = await result(kit, "db.preference.effective", PM, task_id=BUILD)
    assert found["effective"][STYLE] == "bullets", "the task is run with all that applies to it"


async def test_a_bound_key_has_skills_of_the_project_of_its_task_alone(kit: Kit) -> None:
    for name, project in (("Site", WEBSITE), ("Home", OF_ALICE)):
        new = {"content": "# x", "name": name, "scope": "project", "scope_id": project}
        await result(kit, "skills.create", PM_OF_ALICE, task_id=BUILD, **new)
    bound = replace(PM_OF_ALICE, bound={"task_id": BUILD})
    assert {"Site", "Home"} <= await names(kit, PM_OF_ALICE, BUILD)
    for who in (bound, WORKER):
        assert await names(kit, who, BUILD) == {"Site", "Release notes", "CyNodeAI interaction"}
    for project in (OF_ALICE, ABSENT):
        error = await refused(
            kit, "skills.create", bound, task_id=BUILD, content="# x", scope="project",
            scope_id=project,
        )  # fmt: skip
        assert error["message"] == f"There is no project {project!r} for user 'alice'."
