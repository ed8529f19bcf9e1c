"""Keys that are bound to a task, a project or a job: what is outside is out of reach."""

from dataclasses import replace
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    OF_ALICE,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    WEBSITE,
    refused,
    result,
)

from toolgate.gate.principal import Principal
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

TO_TASK = replace(PM_OF_ALICE, bound={"task_id": BUILD})
TO_PROJECT = replace(PM_OF_ALICE, bound={"project_id": WEBSITE})
TO_JOB = replace(PM_OF_ALICE, bound={"job_id": BUILDING})
BOUND = {"task": TO_TASK, "project": TO_PROJECT, "job": TO_JOB}
VALUE = {"key": "custom.tone", "value": "dry", "value_type": "string"}


@pytest.mark.parametrize("caller", BOUND.values(), ids=BOUND)
async def test_it_changes_preferences_of_its_task_and_project_alone(
    kit: Kit, caller: Principal
) -> None:
    await result(kit, "operator.group.add_member", group_id="designers", user_id="alice")
    for scope_type, scope_id in (("user", "alice"), ("group", "designers")):
        place = {"scope_type": scope_type, "scope_id": scope_id}
        error = await refused(kit, "db.preference.create", caller, **place, **VALUE)
        assert error["type"] == "access_denied", place
    other = {"scope_type": "project", "scope_id": OF_ALICE}
    error = await refused(kit, "db.preference.create", caller, **other, **VALUE)
    assert error["type"] == "not_found"
    if caller is TO_PROJECT:
        own = {"scope_type": "project", "scope_id": WEBSITE}
    else:
        own = {"scope_type": "task", "scope_id": BUILD}
    await result(kit, "db.preference.create", caller, **own, **VALUE)


@pytest.mark.parametrize("caller", BOUND.values(), ids=BOUND)
async def test_it_sees_one_project(kit: Kit, caller: Principal) -> None:
    for one in (caller, replace(PA_OF_ALICE, bound=caller.bound)):
        entries = (await result(kit, "db.project.list", one))["entries"]
        assert [project["slug"] for project in entries] == ["website"]
        gone = await refused(kit, "db.project.get", one, slug="default-alice")
        assert gone["type"] == "not_found"


@pytest.mark.parametrize("caller", BOUND.values(), ids=BOUND)
async def test_it_makes_no_skill_for_another_project(kit: Kit, caller: Principal) -> None:
    skill: dict[str, Any] = {"task_id": BUILD, "content": "Be brief.", "scope": "project"}
    await result(kit, "skills.create", caller, **skill, scope_id=WEBSITE)
    error = await refused(kit, "skills.create", caller, **skill, scope_id=OF_ALICE)
    assert error["type"] == "not_found"


async def test_a_bound_manager_without_a_user_reaches_no_user(kit: Kit) -> None:
    caller = replace(PM, bound={"task_id": BUILD})
    place = {"scope_type": "user", "scope_id": "alice"}
    assert (await result(kit, "db.preference.list", caller, **place))["entries"] == []
    assert (await refused(kit, "db.preference.create", caller, **place, **VALUE))["type"] in (
        "not_found",
        "access_denied",
    )


async def test_a_key_of_one_job_does_not_move_its_task(kit: Kit) -> None:
    moved = {"task_id": BUILD, "status": "canceled"}
    error = await refused(kit, "db.task.update_status", TO_JOB, **moved)
    assert error["type"] == "access_denied"
    await result(kit, "db.job.update_status", TO_JOB, job_id=BUILDING, status="completed")
