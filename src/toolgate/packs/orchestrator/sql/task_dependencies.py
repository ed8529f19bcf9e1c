"""What tasks depend on, and which of them wait, perhaps for ever."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, and_, exists, select

from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.sql.reach import reached_tasks
from toolgate.packs.orchestrator.sql.tables import dependencies, tasks
from toolgate.packs.orchestrator.vocabulary import IN_VAIN
from toolgate.packs.orchestrator.work import Dependencies

TASK_WAITS = "A task that is pending cannot become running"
JOB_WAITS = "The job cannot run yet, as its task cannot"


def find_dependencies(
    connection: Connection, viewer: Viewer, task_ids: Sequence[str]
) -> Mapping[str, Dependencies]:
    """What each of these tasks depends on; ids only of tasks that the caller reaches."""
    linked = dependencies.join(tasks, tasks.c.id == dependencies.c.depends_on)
    wanted = select(
        dependencies.c.task_id,
        dependencies.c.depends_on,
        tasks.c.status,
        reached_tasks(viewer).label("reached"),
    )
    wanted = wanted.select_from(linked).where(dependencies.c.task_id.in_(task_ids))
    wanted = wanted.order_by(dependencies.c.task_id, dependencies.c.depends_on)
    ids: dict[str, list[str]] = {one: [] for one in task_ids}
    statuses: dict[str, set[str]] = {one: set() for one in task_ids}
    for row in connection.execute(wanted):
        statuses[row.task_id].add(row.status)
        if row.reached:
            ids[row.task_id].append(row.depends_on)
    return {one: Dependencies(ids[one], frozenset(statuses[one])) for one in task_ids}


def check_dependencies(
    connection: Connection, viewer: Viewer, task_id: str, waits: str = TASK_WAITS
) -> None:
    """Raise where a task depends on one that is not completed; what is completed stays so."""
    linked = dependencies.join(tasks, tasks.c.id == dependencies.c.depends_on)
    wanted = select(tasks.c.id, tasks.c.status, reached_tasks(viewer).label("reached"))
    wanted = wanted.select_from(linked).where(
        dependencies.c.task_id == task_id, tasks.c.status != "completed"
    )
    # First what is in vain: there is no use in waiting for the others.
    wanted = wanted.order_by(tasks.c.status.in_(IN_VAIN).desc(), tasks.c.id).limit(1)
    row = connection.execute(wanted).first()
    if row is None:
        return
    named = f"task {row.id!r}, which it depends on," if row.reached else "a task it depends on"
    then = (
        "will not be completed. Cancel this one, and create another without it."
        if row.status in IN_VAIN
        else "has to be completed before."
    )
    raise Conflict(
        f"{waits}: {named} is {row.status} and {then}",
        current_status="pending",
        dependency_status=row.status,
    )


def waits_in_vain() -> ColumnElement[bool]:
    """Of table `tasks`: those that are pending and depend on one that will not be completed."""
    before = tasks.alias("before")
    linked = dependencies.join(before, before.c.id == dependencies.c.depends_on)
    ended = exists().select_from(linked)
    ended = ended.where(dependencies.c.task_id == tasks.c.id, before.c.status.in_(IN_VAIN))
    return and_(tasks.c.status == "pending", ended.correlate(tasks))
