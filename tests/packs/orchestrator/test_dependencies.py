"""A task runs once all that it depends on is completed, and what waits for ever is seen."""

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    PM,
    PM_OF_ALICE,
    PUBLISH,
    SORT,
    refused,
    result,
)

from toolgate.packs.orchestrator.vocabulary import IN_VAIN
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

RUN = {"task_id": PUBLISH, "status": "running"}
MOVE = "db.task.update_status"


async def test_a_task_does_not_run_before_what_it_depends_on(kit: Kit) -> None:
    error = await refused(kit, MOVE, PM, **RUN)
    assert error["type"] == "conflict"
    assert error["message"] == (
        f"A task that is pending cannot become running: task {BUILD!r}, which it depends on, is "
        "running and has to be completed before."
    )
    assert error["details"] == {"current_status": "pending", "dependency_status": "running"}
    told = await result(kit, "db.task.get", PM, task_id=PUBLISH)
    assert (told["depends_on"], told["waiting"], told["status"]) == ([BUILD], "yes", "pending")
    await result(kit, MOVE, PM, task_id=BUILD, status="completed")
    moved = await result(kit, MOVE, PM, **RUN)
    assert (moved["depends_on"], moved["waiting"], moved["status"]) == ([BUILD], "no", "running")


@pytest.mark.parametrize("status", [one for one in IN_VAIN if one != "canceled"])
async def test_what_waits_for_ever_is_told_and_listed(kit: Kit, status: str) -> None:
    found = await result(kit, "operator.task.list", in_vain=True)
    assert found["entries"] == []
    await result(kit, MOVE, PM, task_id=BUILD, status=status)
    error = await refused(kit, MOVE, PM, **RUN)
    assert f"is {status} and will not be completed. Cancel this one" in error["message"]
    (found,) = (await result(kit, "operator.task.list", in_vain=True))["entries"]
    assert (found["id"], found["waiting"], found["depends_on"]) == (PUBLISH, "in_vain", [BUILD])
    await result(kit, MOVE, PM, task_id=PUBLISH, status="canceled")
    assert (await result(kit, "operator.task.list", in_vain=True))["entries"] == []


async def test_a_new_task_shows_what_it_depends_on(kit: Kit) -> None:
    given = {"prompt": "Write.", "depends_on": [SORT, BUILD, SORT]}
    made = await result(kit, "operator.task.create", **given)
    assert (made["depends_on"], made["waiting"]) == ([BUILD, SORT], "yes")
    listed = {one["id"]: one for one in (await result(kit, "operator.task.list"))["entries"]}
    assert listed[made["id"]]["depends_on"] == [BUILD, SORT]
    assert (listed[BUILD]["depends_on"], listed[BUILD]["waiting"]) == ([], "no")


async def test_the_id_of_a_task_out_of_reach_is_not_told(kit: Kit) -> None:
    given = {"prompt": "Write.", "user_id": "alice", "depends_on": [SORT]}
    made = await result(kit, "operator.task.create", **given)
    told = await result(kit, "db.task.get", PM_OF_ALICE, task_id=made["id"])
    assert (told["depends_on"], told["waiting"]) == ([], "yes")
    error = await refused(kit, MOVE, PM_OF_ALICE, task_id=made["id"], status="running")
    assert "a task it depends on is pending and has to be completed" in error["message"]
    assert SORT not in str(error)


async def test_no_job_of_a_task_that_waits_runs(kit: Kit) -> None:
    job = await result(kit, "operator.job.create", task_id=PUBLISH)
    lease = {"job_id": job["id"], "node_id": "worker-01"}
    move = {"job_id": job["id"], "status": "running"}
    for tool, arguments in (("operator.job.lease", lease), ("db.job.update_status", move)):
        error = await refused(kit, tool, **arguments)
        assert error["type"] == "conflict"
        assert error["message"].startswith("The job cannot run yet, as its task cannot: task ")
    await result(kit, MOVE, PM, task_id=BUILD, status="completed")
    assert (await result(kit, "operator.job.lease", **lease))["status"] == "running"
