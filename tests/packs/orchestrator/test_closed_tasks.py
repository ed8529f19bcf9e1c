"""A task that is closed has no open jobs, and gets none."""

from functools import partial
from typing import Any

import anyio
import pytest
from sqlalchemy import insert, select, update
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    ID,
    PM,
    PUBLISH,
    SORT,
    SORTING,
    refused,
    result,
)

from toolgate.packs.orchestrator.demo import THEN
from toolgate.packs.orchestrator.sql.tables import jobs, tasks
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

CLOSED = ["completed", "failed", "canceled", "superseded"]
QUEUED, EXPIRED, FAILED = (ID.format(one) for one in ("c5", "c6", "c7"))


async def write(kit: Kit, *statements: Any) -> None:
    await kit.app.gate.database.write(lambda one: [one.execute(each) for each in statements])


async def rows_of(kit: Kit, table: Any) -> dict[str, Any]:
    rows = await kit.app.gate.database.read(lambda one: one.execute(select(table)).all())
    return {row.id: row for row in rows}


def job(id: str, status: str, task: str = BUILD) -> Any:
    times = {"created_at": THEN, "updated_at": THEN}
    return insert(jobs).values(id=id, task_id=task, status=status, **times)


@pytest.mark.parametrize("status", CLOSED)
async def test_whoever_closes_a_task_cancels_its_open_jobs(kit: Kit, status: str) -> None:
    leased = update(jobs).where(jobs.c.id == BUILDING).values(lease_expires_at="9999")
    open_, ended = {QUEUED: "queued", EXPIRED: "lease_expired"}, {FAILED: "failed"}
    await write(kit, leased, *(job(*one) for one in {**open_, **ended}.items()))
    await result(kit, "db.task.update_status", PM, task_id=BUILD, status=status)
    found = await rows_of(kit, jobs)
    for one in (BUILDING, QUEUED, EXPIRED):
        assert found[one].status == "canceled"
        assert found[one].ended_at is not None
        assert found[one].lease_expires_at is None
    assert (found[FAILED].status, found[SORTING].status) == ("failed", "queued")
    dependant = "canceled" if status == "canceled" else "pending"
    assert (await rows_of(kit, tasks))[PUBLISH].status == dependant


@pytest.mark.parametrize("status", CLOSED)
async def test_a_closed_task_gets_no_job(kit: Kit, status: str) -> None:
    await write(kit, update(tasks).where(tasks.c.id == SORT).values(status=status))
    error = await refused(kit, "operator.job.create", task_id=SORT)
    assert (error["type"], error["details"]) == ("conflict", {"task_status": status})
    assert f"is {status}" in error["message"]
    assert len(await rows_of(kit, jobs)) == 2
    absent = await refused(kit, "operator.job.create", task_id=ABSENT)
    assert absent["type"] == "not_found"


@pytest.mark.parametrize(
    ("old", "tool", "arguments"),
    [
        ("queued", "db.job.update_status", {"status": "running"}),
        ("lease_expired", "db.job.update_status", {"status": "queued"}),
        ("queued", "operator.job.lease", {"node_id": "worker-01"}),
    ],
    ids=["running", "queued", "leased"],
)
async def test_a_job_of_a_closed_task_runs_no_more(
    kit: Kit, old: str, tool: str, arguments: dict[str, str]
) -> None:
    await write(
        kit,
        update(jobs).where(jobs.c.id == SORTING).values(status=old),
        update(tasks).where(tasks.c.id == SORT).values(status="failed"),
    )
    error = await refused(kit, tool, job_id=SORTING, **arguments)
    assert (error["type"], error["details"]) == ("conflict", {"task_status": "failed"})
    assert (await rows_of(kit, jobs))[SORTING].status == old
    moved = await result(kit, "db.job.update_status", job_id=SORTING, status="canceled")
    assert moved["status"] == "canceled", "what was left open can be ended"


async def test_jobs_that_come_while_their_task_is_closed_are_refused_or_canceled(kit: Kit) -> None:
    ends: list[str] = []

    async def call(tool: str, **arguments: Any) -> None:
        outcome = await kit.call(tool, **arguments)
        ends.append(outcome.error_type or "success")

    async with anyio.create_task_group() as calls:
        for number in range(12):
            calls.start_soon(partial(call, "operator.job.create", task_id=BUILD))
            if number == 5:
                closing = partial(call, "db.task.update_status", task_id=BUILD, status="completed")
                calls.start_soon(closing)
    assert set(ends) <= {"success", "conflict"}
    found = (await rows_of(kit, jobs)).values()
    assert {one.status for one in found if one.task_id == BUILD} == {"canceled"}
    assert (await rows_of(kit, tasks))[BUILD].status == "completed"
