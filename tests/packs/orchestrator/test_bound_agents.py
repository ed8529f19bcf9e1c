"""Keys that are bound to a task, a project or a job: what is outside is out of reach."""

from dataclasses import replace
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    OF_ALICE,
    OF_BOB,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    SORT,
    SORTING,
    WEBSITE,
    refused,
    result,
)

from toolgate.gate.principal import AgentType, Principal, of_agent
from toolgate.packs.orchestrator.sql.key_warnings import key_warnings
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


@pytest.mark.parametrize("caller", BOUND.values(), ids=BOUND)
async def test_it_makes_and_changes_no_skill_of_its_user_or_a_group(
    kit: Kit, caller: Principal
) -> None:
    await result(kit, "operator.group.add_member", group_id="designers", user_id="alice")
    text: dict[str, Any] = {"task_id": BUILD, "content": "# x"}
    group = {"scope": "group", "scope_id": "designers"}
    own = (await result(kit, "skills.create", PM_OF_ALICE, **text))["id"]
    shared = (await result(kit, "skills.create", PM_OF_ALICE, **text, **group))["id"]
    project = await result(kit, "skills.create", caller, **text, scope="project")
    named = {"task_id": BUILD, "skill_id": project["id"]}
    for tool, arguments in (
        ("skills.create", text),
        ("skills.create", {**text, **group}),
        ("skills.update", {**named, **group}),
        ("skills.update", {**named, "scope": "user"}),
        ("skills.update", {**named, "skill_id": own, "name": "N"}),
        ("skills.delete", {**named, "skill_id": shared}),
    ):
        error = await refused(kit, tool, caller, **arguments)
        assert error["type"] == "access_denied", (tool, arguments)
        assert (await kit.audit_rows())[-1]["rule"] == "bound-key"
    await result(kit, "skills.delete", caller, **named)


@pytest.mark.parametrize("caller", BOUND.values(), ids=BOUND)
async def test_it_steers_no_node(kit: Kit, caller: Principal) -> None:
    for slug in ("worker-01", "absent"):
        error = await refused(kit, "node.refresh_config", caller, node_slug=slug)
        assert error["type"] == "access_denied"
    await result(kit, "node.get", caller, node_slug="worker-01")
    await result(kit, "node.refresh_config", PM, node_slug="worker-01")


async def test_a_bound_manager_without_a_user_reaches_no_user(kit: Kit) -> None:
    caller = replace(PM, bound={"task_id": BUILD})
    place = {"scope_type": "user", "scope_id": "alice"}
    assert (await result(kit, "db.preference.list", caller, **place))["entries"] == []
    assert (await refused(kit, "db.preference.create", caller, **place, **VALUE))["type"] in (
        "not_found",
        "access_denied",
    )


@pytest.mark.parametrize("user", [None, "alice"], ids=["no user", "user"])
async def test_a_worker_without_task_and_job_reaches_no_task(kit: Kit, user: str | None) -> None:
    worker = of_agent(AgentType.WORKER, "worker", user)
    for unbound in (worker, replace(worker, bound={"project_id": WEBSITE})):
        for tool in ("artifact.list", "skills.list", "help.get"):
            error = await refused(kit, tool, unbound, task_id=BUILD)
            assert (error["type"], error["message"]) == ("not_found", "Task not found"), tool
    for own in ({"task_id": BUILD}, {"job_id": BUILDING}):
        await result(kit, "artifact.list", replace(worker, bound=own), task_id=BUILD)


async def test_the_ids_of_a_key_are_known_where_there_are_records_of_them(kit: Kit) -> None:
    known = {"user_id": "alice", "project_id": WEBSITE, "task_id": BUILD, "job_id": BUILDING}
    read = kit.app.gate.database.read
    assert await read(lambda one: key_warnings(one, known | {"node_id": "x"})) == []
    for odd in ("x", BUILD.upper().replace("0", "F"), "long" * 32):
        others = dict.fromkeys(known, odd)
        told = await read(lambda one, ids=others: key_warnings(one, ids))
        kinds = [name.removesuffix("_id") for name in known]
        assert told == [f"there is no {kind} {odd} in pack orchestrator yet." for kind in kinds]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ({"user_id": "alice", "task_id": SORT}, f"user alice does not reach task {SORT}, so"),
        ({"user_id": "alice", "job_id": SORTING}, f"user alice does not reach task {SORT}, so"),
        ({"user_id": "alice", "project_id": OF_BOB}, f"user alice does not reach project {OF_BOB}"),
        ({"task_id": BUILD, "job_id": SORTING}, f"job {SORTING} is one of task {SORT}, so the key"),
        ({"task_id": BUILD, "project_id": OF_BOB}, f"task {BUILD} is not in project {OF_BOB}, so"),
        ({"job_id": BUILDING, "project_id": OF_BOB}, f"task {BUILD} is not in project {OF_BOB}"),
        ({"user_id": "bob", "task_id": BUILD, "job_id": BUILDING, "project_id": WEBSITE}, None),
        ({"task_id": SORT, "job_id": SORTING}, None),
    ],
    ids=["task", "job", "project", "tasks", "task-project", "job-project", "viewer", "no-user"],
)
async def test_ids_of_a_key_that_contradict_one_another_are_told(
    kit: Kit, ids: dict[str, str], told: str | None
) -> None:
    found = await kit.app.gate.database.read(lambda one: key_warnings(one, ids))
    assert len(found) == (told is not None)
    assert all(one.startswith(told or "") and one.endswith(".") for one in found)


async def test_a_key_of_one_job_does_not_move_its_task(kit: Kit) -> None:
    moved = {"task_id": BUILD, "status": "canceled"}
    error = await refused(kit, "db.task.update_status", TO_JOB, **moved)
    assert error["type"] == "access_denied"
    await result(kit, "db.job.update_status", TO_JOB, job_id=BUILDING, status="completed")
