"""Audit rows of background work: one when a run begins, one when it has ended.

A run acts for nobody who calls. What it changes is in the change log under the id of its first row,
which is the run's own.
"""

from sqlalchemy import Connection

from toolgate.gate.audit_records import Record, new_id, store, timestamp
from toolgate.gate.errors import GateError
from toolgate.gate.principal import AuditFields
from toolgate.workflows.declarations import RunStatus

WORKFLOW = "workflow"
"""Kind of caller, transport, and the rule."""


def note_run(
    connection: Connection, run_id: str, workflow: str, status: RunStatus, seconds: float
) -> None:
    """Store a row of a run that begins (`running`) or has ended."""
    who = AuditFields(
        subject_type=WORKFLOW,
        subject_id=f"{WORKFLOW}:{workflow}",
        user_id=None,
        agent_type=None,
        role_names="",
        group_ids="",
        project_id=None,
        task_id=None,
        run_id=None,
        job_id=None,
        client_id=None,
        grant_id=None,
    )
    begins = status is RunStatus.RUNNING
    failed = status in {RunStatus.FAILED, RunStatus.CANCELLED}
    done = (
        "workflows.begin" if begins else "workflows.end",
        "allow",
        WORKFLOW,
        "error" if failed else "success",
        status.value if failed else None,
        round(seconds * 1000),
    )
    id = run_id if begins else new_id()
    store(connection, [Record(id, timestamp(), run_id, WORKFLOW, *who, *done)])


def words_of(error: Exception) -> str | None:
    """What an error of ours says, which is meant for callers."""
    return str(error) if isinstance(error, GateError) else None
