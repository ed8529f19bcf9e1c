"""A key that is bound and has no user is for its task or project, and for no person."""

from dataclasses import replace
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    ID,
    OF_ALICE,
    PM,
    PM_OF_ALICE,
    WEBSITE,
    refused,
    result,
)

from toolgate.gate.principal import AgentType, Principal, of_agent
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

NOTES = ID.format("d1")
"""A skill of alice alone; BUILD is her task."""
SYSTEM_SKILL = "CyNodeAI interaction"
TO = {"task": {"task_id": BUILD}, "job": {"job_id": BUILDING}, "project": {"project_id": WEBSITE}}
MANAGERS = {name: replace(PM, bound=bound) for name, bound in TO.items()}
WORKERS = {
    name: replace(of_agent(AgentType.WORKER, "worker"), bound=TO[name]) for name in ("task", "job")
}
VALUE = {"key": "custom.tone", "value": "dry", "value_type": "string"}


async def names(kit: Kit, who: Principal) -> set[str]:
    page = await result(kit, "skills.list", who, task_id=BUILD)
    return {one["name"] for one in page["entries"]}


async def skill(kit: Kit, name: str, scope: str, scope_id: str | None = None) -> str:
    """A skill of alice."""
    new: dict[str, Any] = {"task_id": BUILD, "content": "# x", "name": name, "scope": scope}
    if scope_id is not None:
        new["scope_id"] = scope_id
    return (await result(kit, "skills.create", PM_OF_ALICE, **new))["id"]


@pytest.mark.parametrize(
    "who",
    [*MANAGERS.values(), *WORKERS.values()],
    ids=[*(f"pm-{one}" for one in MANAGERS), *(f"worker-{one}" for one in WORKERS)],
)
async def test_it_reads_skills_for_everybody_and_of_its_project_alone(
    kit: Kit, who: Principal
) -> None:
    of_project = await skill(kit, "Site", "project", WEBSITE)
    await skill(kit, "Home", "project", OF_ALICE)
    assert await names(kit, who) == {SYSTEM_SKILL, "Site"}
    await result(kit, "skills.get", who, task_id=BUILD, skill_id=of_project)
    told = [
        await refused(kit, "skills.get", who, task_id=BUILD, skill_id=one)
        for one in (NOTES, ABSENT)
    ]
    assert told == [{"type": "not_found", "message": "Skill not found"}] * 2


@pytest.mark.parametrize("who", MANAGERS.values(), ids=MANAGERS)
async def test_it_changes_no_skill(kit: Kit, who: Principal) -> None:
    of_project = await skill(kit, "Site", "project", WEBSITE)
    for tool, more in (("update", {"name": "Mine"}), ("delete", {})):
        for one, kind in ((of_project, "access_denied"), (NOTES, "not_found")):
            given = {"task_id": BUILD, "skill_id": one, **more}
            assert (await refused(kit, f"skills.{tool}", who, **given))["type"] == kind
    for scope in ("user", "project"):
        given = {"task_id": BUILD, "content": "# x", "scope": scope}
        error = await refused(kit, "skills.create", who, **given)
        assert error["type"] == "access_denied"
        assert "this key has none" in error["message"]


async def test_a_manager_of_the_whole_system_acts_for_the_owner(kit: Kit) -> None:
    assert "Release notes" in await names(kit, PM)
    made = await result(kit, "skills.create", PM, task_id=BUILD, content="# x")
    assert made["owner"] == "alice"


@pytest.mark.parametrize("who", MANAGERS.values(), ids=MANAGERS)
async def test_its_project_is_there_and_no_other(kit: Kit, who: Principal) -> None:
    assert (await result(kit, "db.project.get", who, slug="website"))["id"] == WEBSITE
    entries = (await result(kit, "db.project.list", who))["entries"]
    assert [one["slug"] for one in entries] == ["website"]
    place = {"scope_type": "project", "scope_id": WEBSITE}
    await result(kit, "db.preference.create", who, **place, **VALUE)
    assert len((await result(kit, "db.preference.list", who, **place))["entries"]) > 0
    told: list[str] = []
    for one in (OF_ALICE, ABSENT):
        other = {"scope_type": "project", "scope_id": one}
        error = await refused(kit, "db.preference.create", who, **other, **VALUE)
        told.append(error["message"].replace(one, ""))
        assert error["type"] == "not_found"
    assert told[0] == told[1]
    error = await refused(kit, "db.project.get", who, slug="default-alice")
    assert error["type"] == "not_found"


async def test_without_any_binding_there_is_no_project(kit: Kit) -> None:
    assert (await result(kit, "db.project.list", PM))["entries"] == []


async def test_a_task_without_a_user_is_told_and_global_skills_need_none(kit: Kit) -> None:
    task = (await result(kit, "operator.task.create", prompt="x"))["id"]
    new = {"task_id": task, "content": "# x"}
    for who in (PM, None):
        error = await refused(kit, "skills.create", *([who] if who else []), **new)
        assert error["type"] == "invalid_arguments"
        assert "task_id names a task without a user" in error["message"]
    made = await result(kit, "skills.create", **new, name="All", scope="global")
    assert made["owner"] is None
    assert "All" in await names(kit, PM_OF_ALICE)
    change = {"task_id": task, "skill_id": made["id"], "name": "Mine"}
    assert (await refused(kit, "skills.update", PM, **change))["type"] == "access_denied"
    bound = replace(PM, bound={"task_id": task})
    assert (await refused(kit, "skills.update", bound, **change))["type"] == "access_denied"
    assert (await result(kit, "skills.update", **change))["name"] == "Mine"
