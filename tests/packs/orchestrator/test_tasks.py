"""Tasks and jobs: who sees them, which moves there are, and what a cancelled task takes along."""

from typing import Any

import anyio
import pytest
from sqlalchemy import insert, select, update
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    ID,
    PA_OF_ALICE,
    PA_OF_BOB,
    PM,
    PM_OF_ALICE,
    PUBLISH,
    SORT,
    SORTING,
    WORKER,
    refused,
    result,
)

from toolgate.packs.orchestrator.demo import THEN
from toolgate.packs.orchestrator.sql import work as sql_work
from toolgate.packs.orchestrator.sql.tables import dependencies, jobs, tasks
from toolgate.packs.orchestrator.vocabulary import JOB_STATUSES, TASK_STATUSES
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

TASK_MOVES = {
    ("pending", "running"),
    ("pending", "canceled"),
    ("pending", "superseded"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "canceled"),
    ("running", "superseded"),
}
JOB_MOVES = {
    ("queued", "running"),
    ("queued", "canceled"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "canceled"),
    ("running", "lease_expired"),
    ("lease_expired", "queued"),
    ("lease_expired", "failed"),
    ("lease_expired", "canceled"),
}


async def write(kit: Kit, *statements: Any) -> None:
    await kit.app.gate.database.write(lambda one: [one.execute(each) for each in statements])


async def statuses(kit: Kit, table: Any) -> dict[str, str]:
    rows = await kit.app.gate.database.read(lambda one: one.execute(select(table)).all())
    return {row.id: row.status for row in rows}


async def test_a_task_is_shown_whole(kit: Kit) -> None:
    task = await result(kit, "db.task.get", task_id=BUILD)
    assert task["status"] == "running"
    assert task["prompt"] == "Build the start page."
    assert (task["created_by"], task["closed"]) == ("alice", False)


async def test_who_sees_which_task(kit: Kit) -> None:
    for who in (PM, PM_OF_ALICE, PA_OF_ALICE):
        assert (await result(kit, "db.task.get", who, task_id=BUILD))["id"] == BUILD
    assert (await result(kit, "db.task.get", PA_OF_BOB, task_id=BUILD))["id"] == BUILD
    hidden = await kit.call("db.task.get", WORKER, task_id=BUILD)
    assert hidden.body == {"error": "Unknown tool: db.task.get"}


async def test_another_users_task_is_as_good_as_none(kit: Kit) -> None:
    told = [await refused(kit, "db.task.get", PA_OF_ALICE, task_id=one) for one in (SORT, ABSENT)]
    assert told == [{"type": "not_found", "message": "Task not found"}] * 2
    told = [await refused(kit, "db.job.get", PA_OF_ALICE, job_id=one) for one in (SORTING, ABSENT)]
    assert told == [{"type": "not_found", "message": "Job not found"}] * 2


async def test_every_move_of_a_task(kit: Kit) -> None:
    for old in TASK_STATUSES:
        for to in TASK_STATUSES:
            await write(kit, update(tasks).where(tasks.c.id == SORT).values(status=old))
            arguments = {"task_id": SORT, "status": to}
            if (old, to) in TASK_MOVES or old == to:
                moved = await result(kit, "db.task.update_status", **arguments)
                assert moved["status"] == to
                ended = to in ("completed", "failed", "canceled", "superseded")
                assert moved["closed"] is ended
            else:
                error = await refused(kit, "db.task.update_status", **arguments)
                assert (error["type"], error["details"]) == ("conflict", {"current_status": old})
                assert (await statuses(kit, tasks))[SORT] == old


async def test_every_move_of_a_job(kit: Kit) -> None:
    for old in JOB_STATUSES:
        for to in JOB_STATUSES:
            await write(kit, update(jobs).where(jobs.c.id == SORTING).values(status=old))
            arguments = {"job_id": SORTING, "status": to}
            if (old, to) in JOB_MOVES or old == to:
                assert (await result(kit, "db.job.update_status", **arguments))["status"] == to
            else:
                error = await refused(kit, "db.job.update_status", **arguments)
                assert (error["type"], error["details"]) == ("conflict", {"current_status": old})


async def test_the_same_status_again_changes_nothing(kit: Kit) -> None:
    before = await result(kit, "db.task.get", task_id=BUILD)
    assert await result(kit, "db.task.update_status", task_id=BUILD, status="running") == before


async def test_cancelling_takes_open_dependants_and_jobs_along(kit: Kit) -> None:
    left, right, end, done = (ID.format(one) for one in ("e1", "e2", "e3", "e4"))
    common = {"prompt": "x", "created_by": "alice", "created_at": THEN, "updated_at": THEN}
    await write(
        kit,
        insert(tasks).values(
            [
                {"id": left, "status": "pending", **common},
                {"id": right, "status": "pending", **common},
                {"id": end, "status": "pending", **common},
                {"id": done, "status": "completed", **common},
            ]
        ),
        insert(dependencies).values(
            [
                {"task_id": left, "depends_on": BUILD},
                {"task_id": right, "depends_on": BUILD},
                {"task_id": end, "depends_on": left},
                {"task_id": end, "depends_on": right},
                {"task_id": done, "depends_on": left},
            ]
        ),
    )
    await result(kit, "db.task.update_status", task_id=BUILD, status="canceled", reason="no need")
    found = await statuses(kit, tasks)
    assert {found[one] for one in (BUILD, left, right, end, PUBLISH)} == {"canceled"}
    assert (found[done], found[SORT]) == ("completed", "pending")
    assert await statuses(kit, jobs) == {BUILDING: "canceled", SORTING: "queued"}
    assert (await result(kit, "db.task.get", task_id=BUILD))["status_reason"] == "no need"
    reason = (await result(kit, "db.task.get", task_id=end))["status_reason"]
    # No id: whoever reads it may not reach the other task.
    assert reason == "a task that it depends on was canceled"


async def test_a_dry_run_cancels_nothing(kit: Kit) -> None:
    outcome = await kit.call(
        "db.task.update_status", dry_run=True, task_id=BUILD, status="canceled"
    )
    assert outcome.body["result"]["status"] == "canceled"
    assert (await statuses(kit, tasks))[BUILD] == "running"


async def test_of_two_moves_at_once_one_wins(kit: Kit) -> None:
    ends: list[str] = []

    async def move(to: str) -> None:
        outcome = await kit.call("db.task.update_status", task_id=BUILD, status=to)
        ends.append(outcome.error_type or "success")

    async with anyio.create_task_group() as moves:
        for to in ("completed", "failed", "superseded"):
            moves.start_soon(move, to)
    assert sorted(ends) == ["conflict", "conflict", "success"]


async def test_a_lease_runs_out_by_time(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = "2026-03-01T12:00:00.000000Z"
    await write(kit, update(jobs).where(jobs.c.id == BUILDING).values(lease_expires_at=lease))
    monkeypatch.setattr(sql_work, "timestamp", lambda: "2026-03-01T11:59:59.999999Z")
    assert (await result(kit, "db.job.get", job_id=BUILDING))["status"] == "running"
    monkeypatch.setattr(sql_work, "timestamp", lambda: lease)
    assert (await result(kit, "db.job.get", job_id=BUILDING))["status"] == "lease_expired"
    error = await refused(kit, "db.job.update_status", job_id=BUILDING, status="completed")
    assert error["details"] == {"current_status": "lease_expired"}
    queued = await result(kit, "db.job.update_status", job_id=BUILDING, status="queued")
    assert (queued["status"], queued["lease_expires_at"]) == ("queued", None)


async def test_a_job_knows_when_it_began_and_ended(kit: Kit) -> None:
    running = await result(kit, "db.job.update_status", job_id=SORTING, status="running")
    assert running["started_at"] is not None
    assert running["ended_at"] is None
    ended = await result(kit, "db.job.update_status", job_id=SORTING, status="completed")
    assert ended["ended_at"] >= running["started_at"]


async def test_the_audit_names_task_and_job_of_the_arguments(kit: Kit) -> None:
    await result(kit, "db.task.get", PM, task_id=BUILD)
    await result(kit, "db.job.get", PM, job_id=BUILDING)
    first, second = (await kit.audit_rows())[-2:]
    assert (first["task_id"], second["job_id"]) == (BUILD, BUILDING)


@pytest.mark.parametrize("value", ["", "x", BUILD[:-1], BUILD + "0", "../x"])
async def test_an_id_is_a_uuid(kit: Kit, value: str) -> None:
    error = await refused(kit, "db.task.get", task_id=value)
    assert error["message"] == "task_id must be a valid UUID"


async def test_letters_of_an_id_have_no_case(kit: Kit) -> None:
    assert (await result(kit, "db.task.get", task_id=BUILD.upper()))["id"] == BUILD
