"""What is done to the rows of runs, each in one statement."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    delete,
    false,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from toolgate.db.prepared import PreparedStatement
from toolgate.db.workflow_tables import workflow_runs as runs
from toolgate.workflows.declarations import RunRecord, RunStatus

TOLD = tuple(runs.c[name] for name in RunRecord.__dataclass_fields__)
ENDED = {"due_at": None, "lease": None, "alone": None}
"""What a run has no more once it has ended."""
INSERTS = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
AnyRow = Row[*tuple[Any, ...]]


def record_of(row: Mapping[Any, Any]) -> RunRecord:
    """A row as it is told."""
    values: dict[str, Any] = dict(row)
    values["status"] = RunStatus(values["status"])
    return RunRecord(**values)


def insert_run(connection: Connection, row: Mapping[str, Any]) -> str | None:
    """Store a new run and return its id; where it is to join another one, that one's.

    None where the other one ended at this very moment.
    """
    insert = INSERTS[connection.dialect.name](runs).values(row).on_conflict_do_nothing()
    if connection.execute(insert.returning(runs.c.id)).first():
        return row["id"]
    for joined in _joined(row):
        if id := connection.scalar(select(runs.c.id).where(joined)):
            return id
    return None


def _joined(row: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Which runs a new one is the same as: none by what it does not have itself."""
    joined: list[ColumnElement[bool]] = []
    if row["key"] is not None:
        joined.append((runs.c.workflow == row["workflow"]) & (runs.c.key == row["key"]))
    if row["alone"] is not None:
        joined.append(runs.c.alone == row["alone"])
    return joined


def find_run(connection: Connection, id: str) -> RunRecord | None:
    """The run of this id."""
    row = connection.execute(select(*TOLD).where(runs.c.id == id)).mappings().first()
    return record_of(row) if row else None


def list_runs(
    connection: Connection,
    *,
    pack: str | None,
    workflow: str | None,
    status: RunStatus | None,
    limit: int,
) -> list[RunRecord]:
    """The newest runs, of a pack, of a workflow or in a status if one is named."""
    wanted = select(*TOLD).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit)
    if pack is not None:
        wanted = wanted.where(runs.c.workflow.startswith(f"{pack}/", autoescape=True))
    if workflow is not None:
        wanted = wanted.where(runs.c.workflow == workflow)
    if status is not None:
        wanted = wanted.where(runs.c.status == status.value)
    return [record_of(row) for row in connection.execute(wanted).mappings()]


def next_due(workflows: Collection[str]) -> PreparedStatement:
    """Looks up when the first run of these workflows is due; it reads one row of an index."""
    ours = or_(false(), *(runs.c.workflow == name for name in workflows))
    due = select(runs.c.due_at).where(runs.c.due_at.is_not(None), ours)
    return PreparedStatement(due.order_by(runs.c.due_at).limit(1))


def take_run(
    connection: Connection, *, now: str, until: str, lease: str, workflows: Collection[str]
) -> AnyRow | None:
    """Give the lease of the run that waits longest to who asks; None where nothing is due."""
    due = (
        select(runs.c.id)
        .where(runs.c.due_at <= now, runs.c.workflow.in_(workflows))
        .order_by(runs.c.due_at, runs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    taken = (
        update(runs)
        .where(runs.c.id == due, runs.c.due_at <= now)
        .values(
            status=RunStatus.RUNNING.value,
            due_at=until,
            lease=lease,
            attempts=runs.c.attempts + 1,
            updated_at=now,
        )
        .returning(runs)
    )
    return connection.execute(taken).first()


def update_leased(
    connection: Connection, id: str, lease: str, values: Mapping[str, Any]
) -> AnyRow | None:
    """Change the run for who holds the lease; None where somebody else does."""
    held = and_(runs.c.id == id, runs.c.lease == lease)
    change = update(runs).where(held).values(values)
    return connection.execute(change.returning(runs.c.cancelling)).first()


def renew_leases(connection: Connection, leases: Sequence[str], *, until: str) -> dict[str, bool]:
    """Prolong them; those that are still held, with whether their run is to be cancelled."""
    change = update(runs).where(runs.c.lease.in_(leases)).values(due_at=until)
    kept = connection.execute(change.returning(runs.c.lease, runs.c.cancelling))
    return {row.lease: row.cancelling for row in kept}


def cancel_run(connection: Connection, id: str, *, now: str) -> bool:
    """Cancel a run that waits, ask one that runs to stop; False where it has ended."""
    waits = runs.c.status == RunStatus.QUEUED.value

    def if_waiting(value: Any, otherwise: Any) -> Any:
        return case((waits, value), else_=otherwise)

    change = (
        update(runs)
        .where(runs.c.id == id, runs.c.due_at.is_not(None))
        .values(
            cancelling=True,
            status=if_waiting(RunStatus.CANCELLED.value, runs.c.status),
            ended_at=if_waiting(now, runs.c.ended_at),
            due_at=if_waiting(None, runs.c.due_at),
            alone=if_waiting(None, runs.c.alone),
            updated_at=now,
        )
    )
    return bool(connection.execute(change).rowcount)


def retry_run(connection: Connection, id: str, *, now: str, alone: str | None) -> bool:
    """Let a run that failed or was cancelled go on from its last checkpoint; False for others.

    Raises `IntegrityError` where it may only be alone, and another one is under way.
    """
    ended = [RunStatus.FAILED.value, RunStatus.CANCELLED.value]
    change = (
        update(runs)
        .where(runs.c.id == id, runs.c.status.in_(ended))
        .values(
            status=RunStatus.QUEUED.value,
            due_at=now,
            alone=alone,
            attempts=0,
            cancelling=False,
            error=None,
            ended_at=None,
            updated_at=now,
        )
    )
    return bool(connection.execute(change).rowcount)


def delete_old_runs(connection: Connection, *, before: str, limit: int) -> int:
    """Delete some runs that ended before this moment; return how many."""
    old = select(runs.c.id).where(runs.c.ended_at < before).order_by(runs.c.ended_at).limit(limit)
    return connection.execute(delete(runs).where(runs.c.id.in_(old))).rowcount
