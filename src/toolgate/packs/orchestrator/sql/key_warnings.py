"""What is wrong with the ids that an agent's new key is made for, as things are."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, exists, select

from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.pack import ORCHESTRATOR
from toolgate.packs.orchestrator.sql.reach import reached_projects, reached_tasks
from toolgate.packs.orchestrator.sql.tables import jobs, projects, tasks, users

TABLES = {"user_id": users, "project_id": projects, "task_id": tasks, "job_id": jobs}


def key_warnings(connection: Connection, ids: Mapping[str, str]) -> list[str]:
    """Ids that are of no user, project, task or job, and ids that contradict one another."""
    named = {name: ids[name] for name in TABLES if name in ids}
    known = {name: one for name, one in named.items() if _is_there(connection, TABLES[name], one)}
    unknown = [
        f"there is no {name.removesuffix('_id')} {one} in pack {ORCHESTRATOR.name} yet."
        for name, one in named.items()
        if name not in known
    ]
    return [*unknown, *_contradictions(connection, **known)]


def _contradictions(
    connection: Connection,
    user_id: str | None = None,
    project_id: str | None = None,
    task_id: str | None = None,
    job_id: str | None = None,
) -> Iterator[str]:
    """Ids of records that are there: a key reaches only what belongs to all of them."""
    of_job = connection.scalar(select(jobs.c.task_id).where(jobs.c.id == job_id))
    if task_id is not None and of_job not in (None, task_id):
        yield f"job {job_id} is one of task {of_job}, so the key reaches nothing of task {task_id}."
    task = task_id or of_job
    of_task = connection.scalar(select(tasks.c.project_id).where(tasks.c.id == task))
    if project_id is not None and task is not None and of_task != project_id:
        yield f"task {task} is not in project {project_id}, so the key reaches neither."
    if user_id is None:
        return
    viewer = Viewer(
        all_tasks=False,
        is_admin=False,
        user_id=user_id,
        task_id=None,
        project_id=None,
        job_id=None,
    )
    if task is not None and not _is_there(connection, tasks, task, reached_tasks(viewer)):
        yield f"user {user_id} does not reach task {task}, so the key does not either."
    if project_id and not _is_there(connection, projects, project_id, reached_projects(viewer)):
        yield f"user {user_id} does not reach project {project_id}, so the key does not either."


def _is_there(connection: Connection, table: Table, id_: str, *more: ColumnElement[bool]) -> bool:
    found: Any = connection.scalar(select(exists().where(table.c.id == id_, *more)))
    return bool(found)
