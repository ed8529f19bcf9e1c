"""Leases of jobs: held by one node at a time; and tasks that could never be begun."""

from collections import Counter
from typing import Any

import anyio
import pytest
from sqlalchemy import update
from tests.packs.orchestrator.calls import ABSENT, BUILD, BUILDING, SORT, SORTING, refused, result

from toolgate.packs.orchestrator.sql import work as sql_work
from toolgate.packs.orchestrator.sql.tables import tasks
from toolgate.packs.orchestrator.vocabulary import IN_VAIN
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

FIRST, SECOND = "worker-01", "sandbox-us-east-1-01"


async def leased(kit: Kit, node_id: str, **more: Any) -> Any:
    return await result(kit, "operator.job.lease", job_id=SORTING, node_id=node_id, **more)


async def set_status(kit: Kit, task_id: str, status: str) -> None:
    changed = update(tasks).where(tasks.c.id == task_id).values(status=status)
    await kit.app.gate.database.write(lambda one: one.execute(changed))


async def test_a_lease_in_force_is_not_given_to_another_node(kit: Kit) -> None:
    job = await leased(kit, FIRST)
    error = await refused(kit, "operator.job.lease", job_id=SORTING, node_id=SECOND)
    assert error["type"] == "conflict"
    assert f"runs on node {FIRST!r}, leased until {job['lease_expires_at']}" in error["message"]
    held = {"node_id": FIRST, "lease_expires_at": job["lease_expires_at"]}
    assert error["details"] == held
    assert await result(kit, "db.job.get", job_id=SORTING) == job


async def test_the_node_that_holds_a_lease_gets_it_for_longer(kit: Kit) -> None:
    job = await leased(kit, FIRST, seconds=60)
    longer = await leased(kit, FIRST, seconds=3600)
    assert longer["lease_expires_at"] > job["lease_expires_at"]
    assert (longer["started_at"], longer["status"]) == (job["started_at"], "running")


async def test_a_job_that_runs_on_a_node_without_a_lease_is_that_nodes(kit: Kit) -> None:
    job = await result(kit, "db.job.get", job_id=BUILDING)
    running = {"status": "running", "node_id": FIRST, "lease_expires_at": None}
    assert {name: job[name] for name in running} == running
    error = await refused(kit, "operator.job.lease", job_id=BUILDING, node_id=SECOND)
    assert (error["type"], error["details"]["node_id"]) == ("conflict", FIRST)
    assert f"runs on node {FIRST!r}, without a lease" in error["message"]
    assert await result(kit, "db.job.get", job_id=BUILDING) == job
    own = await result(kit, "operator.job.lease", job_id=BUILDING, node_id=FIRST)
    assert own["lease_expires_at"] is not None
    assert own["started_at"] == job["started_at"]


async def test_a_job_that_was_set_running_by_hand_is_leased_once_it_is_queued_again(
    kit: Kit,
) -> None:
    move = {"job_id": SORTING}
    await result(kit, "db.job.update_status", **move, status="running")
    error = await refused(kit, "operator.job.lease", **move, node_id=FIRST)
    assert error["type"] == "conflict"
    assert "runs without a node, without a lease" in error["message"]
    for status in ("lease_expired", "queued"):
        await result(kit, "db.job.update_status", **move, status=status)
    assert (await leased(kit, FIRST))["node_id"] == FIRST


async def test_a_job_is_not_leased_to_a_node_that_there_is_not(kit: Kit) -> None:
    error = await refused(kit, "operator.job.lease", job_id=SORTING, node_id="no-such-node")
    assert error["type"] == "not_found"
    assert error["message"].startswith("There is no node 'no-such-node'.")
    assert (await result(kit, "db.job.get", job_id=SORTING))["status"] == "queued"


async def test_of_many_nodes_that_want_a_job_one_gets_it(kit: Kit) -> None:
    ends: Counter[str] = Counter()

    async def lease(node_id: str) -> None:
        outcome = await kit.call("operator.job.lease", job_id=SORTING, node_id=node_id)
        ends["leased" if outcome.error is None else outcome.body["error"]["type"]] += 1

    names = [f"node-{number}" for number in range(8)]
    for name in names:
        await result(kit, "operator.node.create", node_slug=name)
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(lease, name)
    assert ends == {"leased": 1, "conflict": 7}


async def test_a_job_that_is_queued_again_has_neither_node_nor_beginning(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await leased(kit, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(sql_work, "timestamp", lambda: job["lease_expires_at"])
        queued = await result(kit, "db.job.update_status", job_id=SORTING, status="queued")
    cleared = ("node_id", "started_at", "ended_at", "lease_expires_at")
    assert [queued[name] for name in cleared] == [None] * 4
    again = await leased(kit, SECOND)
    assert (again["node_id"], again["status"]) == (SECOND, "running")
    assert again["started_at"] is not None


@pytest.mark.parametrize("status", IN_VAIN)
async def test_no_task_depends_on_one_that_will_not_be_completed(kit: Kit, status: str) -> None:
    await set_status(kit, SORT, status)
    given = {"prompt": "Write.", "depends_on": [BUILD, SORT]}
    error = await refused(kit, "operator.task.create", **given)
    assert (error["type"], error["details"]) == ("conflict", {"task_status": status})
    assert f"Task {SORT!r} is {status}" in error["message"]


async def test_a_task_may_depend_on_one_that_is_completed_but_not_on_none(kit: Kit) -> None:
    await set_status(kit, SORT, "completed")
    made = await result(kit, "operator.task.create", prompt="Write.", depends_on=[SORT, BUILD])
    assert made["status"] == "pending"
    error = await refused(kit, "operator.task.create", prompt="Write.", depends_on=[ABSENT])
    assert (error["type"], error["message"]) == ("not_found", f"There is no task {ABSENT!r}.")
