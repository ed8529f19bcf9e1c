"""Who reaches and changes which tasks and projects, as conditions of SQL.

Rows beyond reach are not read.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    and_,
    bindparam,
    false,
    or_,
    select,
    true,
    union,
)

from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.sql.tables import (
    Words,
    bindings,
    jobs,
    members,
    projects,
    tasks,
)
from toolgate.packs.orchestrator.vocabulary import WRITING_ROLES


def projects_of(user_id: str, *, writing: bool = False) -> "CompoundSelect[str]":
    """The ids of a user's projects: the default one, and those bound to the user or a group.

    For writing, those where one of the user's roles lets the user change something.
    """
    groups = select(members.c.group_id).where(members.c.user_id == user_id)
    by_user = and_(bindings.c.subject_type == "user", bindings.c.subject_id == user_id)
    by_group = and_(bindings.c.subject_type == "group", bindings.c.subject_id.in_(groups))
    role = or_(*(bindings.c.role == one for one in WRITING_ROLES)) if writing else true()
    return union(
        select(projects.c.id).where(projects.c.default_of == user_id),
        select(bindings.c.project_id).where(by_user, role),
        select(bindings.c.project_id).where(by_group, role),
    )


def reached_projects(viewer: Viewer) -> ColumnElement[bool]:
    """Of table `projects`."""
    if viewer.is_admin:
        reached: ColumnElement[bool] = true()
    elif viewer.user_id is None:
        # A key without a user reaches just what it is bound to.
        reached = true() if viewer.is_bound else false()
    else:
        reached = projects.c.id.in_(projects_of(viewer.user_id))
    if viewer.project_id is not None:
        reached = and_(reached, projects.c.id == viewer.project_id)
    if viewer.task_id is not None:
        of_task = select(tasks.c.project_id).where(tasks.c.id == viewer.task_id)
        reached = and_(reached, projects.c.id.in_(of_task))
    if viewer.job_id is not None:
        of_job = select(tasks.c.project_id).join(jobs, jobs.c.task_id == tasks.c.id)
        reached = and_(reached, projects.c.id.in_(of_job.where(jobs.c.id == viewer.job_id)))
    return reached


def reached_tasks(viewer: Viewer) -> ColumnElement[bool]:
    """Of table `tasks`."""
    if viewer.no_tasks:
        return false()
    if viewer.all_tasks:
        reached: ColumnElement[bool] = true()
    elif viewer.user_id is None:
        # A key without a user reaches just what it is bound to.
        reached = false() if viewer.task_id is None and viewer.job_id is None else true()
    else:
        own = tasks.c.created_by == viewer.user_id
        reached = or_(own, tasks.c.project_id.in_(projects_of(viewer.user_id)))
    if viewer.task_id is not None:
        reached = and_(reached, tasks.c.id == viewer.task_id)
    if viewer.project_id is not None:
        reached = and_(reached, tasks.c.project_id == viewer.project_id)
    if viewer.job_id is not None:
        of_job = select(jobs.c.task_id).where(jobs.c.id == viewer.job_id)
        reached = and_(reached, tasks.c.id.in_(of_job))
    return reached


def written_projects(viewer: Viewer) -> ColumnElement[bool]:
    """Of table `projects`, among those reached."""
    if viewer.user_id is None:
        return true()
    return projects.c.id.in_(projects_of(viewer.user_id, writing=True))


def written_tasks(viewer: Viewer) -> ColumnElement[bool]:
    """Of table `tasks`, among those reached."""
    if viewer.user_id is None:
        return true()
    own = tasks.c.created_by == viewer.user_id
    return or_(own, tasks.c.project_id.in_(projects_of(viewer.user_id, writing=True)))


IDS = ("user_id", "task_id", "project_id", "job_id")
"""What a caller may be bound to, as parameters of statements that are compiled once."""


def shape_of(viewer: Viewer) -> tuple[bool, ...]:
    """Callers of one shape are asked about with one statement."""
    bound = (getattr(viewer, name) is not None for name in IDS)
    return (viewer.all_tasks, viewer.no_tasks, viewer.is_admin, *bound)


def with_parameters(viewer: Viewer) -> Viewer:
    """A caller of the same shape, with parameters in the place of its ids."""
    ids: dict[str, Any] = {
        name: bindparam(name, type_=Words) for name in IDS if getattr(viewer, name) is not None
    }
    return replace(viewer, **ids)


def parameters_of(viewer: Viewer) -> dict[str, str | None]:
    """The values of these parameters."""
    return {name: getattr(viewer, name) for name in IDS}
