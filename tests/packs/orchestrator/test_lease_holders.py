"""Who may hold a lease, and whose result ends a job."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import SORTING, refused, result

from toolgate.packs.orchestrator.sql import work as sql_work
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

FIRST, SECOND = "worker-01", "sandbox-us-east-1-01"


async def leased(kit: Kit, node_id: str, **more: Any) -> Any:
    return await result(kit, "operator.job.lease", job_id=SORTING, node_id=node_id, **more)


async def test_a_drained_node_gets_no_job_and_keeps_what_it_runs(kit: Kit) -> None:
    drain = {"node_slug": FIRST, "drained": True}
    await result(kit, "operator.node.update", **drain)
    error = await refused(kit, "operator.job.lease", job_id=SORTING, node_id=FIRST)
    assert error["type"] == "conflict"
    assert f"Node {FIRST!r} is drained and takes no jobs." in error["message"]
    assert (await result(kit, "db.job.get", job_id=SORTING))["status"] == "queued"
    await result(kit, "operator.node.update", **{**drain, "drained": False})
    job = await leased(kit, FIRST, seconds=60)
    await result(kit, "operator.node.update", **drain)
    assert (await leased(kit, FIRST))["lease_expires_at"] > job["lease_expires_at"]


async def test_a_node_does_not_inherit_the_lease_of_one_of_its_name(kit: Kit) -> None:
    await leased(kit, FIRST)
    await result(kit, "operator.node.delete", node_slug=FIRST)
    assert (await result(kit, "db.job.get", job_id=SORTING))["status"] == "lease_expired"
    await result(kit, "operator.node.create", node_slug=FIRST)
    error = await refused(kit, "operator.job.lease", job_id=SORTING, node_id=FIRST)
    assert error["type"] == "conflict"
    await result(kit, "db.job.update_status", job_id=SORTING, status="queued")
    assert (await leased(kit, FIRST))["status"] == "running"


async def test_a_late_result_does_not_end_another_nodes_job(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await leased(kit, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(sql_work, "timestamp", lambda: job["lease_expires_at"])
        await result(kit, "db.job.update_status", job_id=SORTING, status="queued")
    end = {"job_id": SORTING, "status": "completed"}
    late = {**end, "node_id": FIRST, "result": {"by": 1}}
    error = await refused(kit, "operator.job.finish", **late)
    assert "no node has it" in error["message"]
    await leased(kit, SECOND)
    error = await refused(kit, "operator.job.finish", **late)
    assert (error["type"], error["details"]["node_id"]) == ("conflict", SECOND)
    assert f"it was given to node {SECOND!r}" in error["message"]
    own = await result(kit, "operator.job.finish", **end, node_id=SECOND, result={"by": 2})
    assert (own["status"], own["result"]) == ("completed", {"by": 2})
    error = await refused(kit, "operator.job.finish", **late)
    assert error["type"] == "conflict"
    assert (await result(kit, "db.job.get", job_id=SORTING))["result"] == {"by": 2}


async def test_the_result_of_a_job_that_has_ended_stays(kit: Kit) -> None:
    await leased(kit, FIRST)
    end = {"job_id": SORTING, "status": "completed", "node_id": FIRST, "result": {"by": 1}}
    first = await result(kit, "operator.job.finish", **end)
    assert await result(kit, "operator.job.finish", **end) == first
    for other in ({"result": {"by": 2}}, {"result": None}, {"result": 1, "node_id": None}):
        error = await refused(kit, "operator.job.finish", **{**end, **other})
        assert error["type"] == "conflict"
        assert "is completed already, and its result is kept" in error["message"]
    assert (await result(kit, "db.job.get", job_id=SORTING))["result"] == {"by": 1}


async def test_a_node_that_was_made_again_does_not_end_the_jobs_of_its_name(kit: Kit) -> None:
    await leased(kit, FIRST)
    await result(kit, "operator.node.delete", node_slug=FIRST)
    await result(kit, "operator.node.create", node_slug=FIRST)
    late = {"job_id": SORTING, "status": "failed", "node_id": FIRST, "result": {"by": "another"}}
    error = await refused(kit, "operator.job.finish", **late)
    assert "no node has it" in error["message"]
