"""Which tasks and projects a caller reaches.

Admins reach all. A project manager without a user runs the whole system: it reaches every task, and
nothing that is a user's: no project, no preferences of users and groups. Everybody else reaches
what its user does: the tasks that the user created, those of the user's projects, and these
projects. A key that is bound to a task, job or project reaches no other, and of projects only that
of its task; without a user, it reaches just these. A worker is there for one task: without a bound
task or job it reaches none.

A role in a project lets its holder change what belongs to the project, or only read it. Whoever
created a task may change it, whatever the role.

Who acts is the caller's user. A task only gives the context: whoever reaches it does not become its
owner. Admins, and a project manager whose key has neither a user nor a bound id, act for the owner.
"""

from dataclasses import dataclass, replace

from toolgate.gate.errors import Forbidden
from toolgate.gate.principal import AgentType, Principal, Role


@dataclass(frozen=True, slots=True)
class Viewer:
    """A caller, as the database is asked about its records."""

    all_tasks: bool
    is_admin: bool
    user_id: str | None
    task_id: str | None
    project_id: str | None
    job_id: str | None
    no_tasks: bool = False
    """Whether it is a worker that nobody gave a task."""

    @property
    def reach(self) -> tuple[bool | str | None, ...]:
        """What tells two callers apart that do not reach the same; the cursors of lists have it."""
        ids = (self.user_id, self.task_id, self.project_id, self.job_id)
        return (self.all_tasks, self.is_admin, self.no_tasks, *ids)

    @property
    def is_bound(self) -> bool:
        """Whether there is one task, project or job that it is for."""
        return not (self.task_id is None and self.project_id is None and self.job_id is None)


def viewer_of(principal: Principal) -> Viewer:
    """The caller's reach."""
    admin = Role.ADMIN in principal.roles
    system = principal.agent_type is AgentType.PM and principal.user_id is None
    bound = principal.bound
    return Viewer(
        all_tasks=admin or system,
        is_admin=admin,
        user_id=None if admin else principal.user_id,
        task_id=bound.get("task_id"),
        project_id=bound.get("project_id"),
        job_id=bound.get("job_id"),
        no_tasks=principal.agent_type is AgentType.WORKER and not {"task_id", "job_id"} & {*bound},
    )


def acting_viewer(principal: Principal, owner: str | None) -> Viewer:
    """The caller as the user who acts on a task, with that user's reach and no more.

    It is the caller's user; for those who run the whole system, the task's owner. A key that is
    bound and has no user acts as nobody: it was made for that task, and not for its owner.
    """
    viewer = viewer_of(principal)
    for_owner = viewer.is_admin or (viewer.all_tasks and not principal.bound)
    user = owner if for_owner else viewer.user_id
    return replace(viewer, all_tasks=False, is_admin=False, user_id=user)


def check_within_bound(principal: Principal, scope: str) -> None:
    """Raise `Forbidden` where a bound key would change what is for its user or a whole group."""
    if principal.bound and scope in ("user", "group"):
        raise Forbidden(
            "A key that is bound to a project, task or job changes preferences and skills of these "
            "alone, and none of its user or a group.",
            rule="bound-key",
        )


def read_only_role() -> Forbidden:
    """What a caller is told that reaches something and may not change it: it knows of it."""
    return Forbidden(
        "Your role in this project only reads: a viewer changes none of its tasks, jobs, "
        "artifacts, preferences and skills. Ask an operator for the role member.",
        rule="project-role",
    )
