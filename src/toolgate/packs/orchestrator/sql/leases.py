"""Which node has a job."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from toolgate.db.records import update_records
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict, NotFound
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.sql.tables import jobs, nodes
from toolgate.packs.orchestrator.vocabulary import ENDED, JobStatus


def keep_node(connection: Connection, slug: str) -> bool:
    """Whether a node takes jobs; nobody drains or deletes it before the transaction ends."""
    wanted = select(nodes.c.drained).where(nodes.c.slug == slug).with_for_update(read=True)
    drained = connection.scalar(wanted)
    if drained is None:
        raise NotFound(f"There is no node {slug!r}. operator.node.create makes one.")
    return not drained


def drained_node(slug: str) -> Conflict:
    """What is told of a node that was taken out."""
    return Conflict(
        f"Node {slug!r} is drained and takes no jobs. Lease the job to another node, or take this "
        "one back with operator.node.update and drained false."
    )


def as_of(job: Row, now: str) -> Row:
    """A job as it is at a moment: one that runs past its lease has lost it, whoever notices."""
    lease = job["lease_expires_at"]
    if job["status"] == "running" and lease is not None and lease <= now:
        return {**job, "status": "lease_expired"}
    return job


def check_holder(job: Row, node_id: str) -> None:
    """Raise where a job runs elsewhere: with a lease, or without one, which nothing ends."""
    holder, until = job["node_id"], job["lease_expires_at"]
    if holder == node_id:
        return
    where = "without a node" if holder is None else f"on node {holder!r}"
    how = "without a lease" if until is None else f"leased until {until}"
    then = (
        "give it the status lease_expired and then queued with db.job.update_status"
        if until is None
        else "wait for the end of the lease and queue it again"
    )
    raise Conflict(
        f"The job runs {where}, {how}. End it with operator.job.finish, or {then}.",
        node_id=holder,
        lease_expires_at=until,
    )


def check_finisher(job: Row, node_id: str) -> None:
    """Raise where a job is not the node's that gives its result back."""
    holder = job["node_id"]
    if holder != node_id:
        whose = "no node has it" if holder is None else f"it was given to node {holder!r}"
        raise Conflict(
            f"The job is not node {node_id!r}'s any more: {whose}. This result is not kept.",
            node_id=holder,
            current_status=job["status"],
        )


def check_same(job: Row, told: Mapping[str, Any]) -> None:
    """Raise where something else is told of a job that has its status already."""
    if any(job[name] != value for name, value in told.items()):
        raise Conflict(
            f"The job is {job['status']} already, and its result is kept. "
            "Create another job to run it again.",
            current_status=job["status"],
        )


def end_leases(tx: Transaction, connection: Connection, node_id: str, now: str) -> None:
    """Take the jobs that run on a node from it: another of its name does not inherit them."""
    running = [jobs.c.node_id == node_id, jobs.c.status == "running"]
    lost = {
        "status": "lease_expired",
        "node_id": None,
        "lease_expires_at": now,
        "updated_at": now,
    }
    update_records(tx, connection, jobs, running, lost)


def times_after(to: JobStatus, row: Row, now: str) -> dict[str, Any]:
    """When the job began and ended, after a move."""
    if to == "running":
        return {"started_at": row["started_at"] or now, "ended_at": None}
    if to in ENDED:
        return {"ended_at": now, "lease_expires_at": None}
    if to == "queued":  # the next attempt, on whichever node
        return {"lease_expires_at": None, "node_id": None, "started_at": None}
    return {}
