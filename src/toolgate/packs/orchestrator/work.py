"""Projects, tasks and jobs, as the tools ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.access_rules import DeniedProjects
from toolgate.packs.orchestrator.records import Layers
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.vocabulary import IN_VAIN, JobStatus, ScopeType, TaskStatus

Waiting = Literal["no", "yes", "in_vain"]
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a task depends on."""

    ids: Sequence[str] = ()
    """Of the tasks that the caller reaches."""
    statuses: frozenset[str] = frozenset()
    """Of all."""

    def waiting(self, status: str) -> Waiting:
        """Whether a task of this status waits for one of them, perhaps for ever."""
        if status != "pending" or self.statuses <= {"completed"}:
            return "no"
        return "in_vain" if self.statuses & {*IN_VAIN} else "yes"


class Work(Protocol):
    """What the agents work on. Whatever a caller does not reach is not there for it."""

    async def task(self, viewer: Viewer, task_id: str) -> Row | None:
        """One task."""
        ...

    async def dependencies(
        self, viewer: Viewer, task_ids: Sequence[str]
    ) -> Mapping[str, Dependencies]:
        """What each of these tasks depends on."""
        ...

    async def task_to_change(self, viewer: Viewer, task_id: str) -> Row | None:
        """One task, for a caller that changes something of it.

        Raises `Forbidden` where the caller's role only reads.
        """
        ...

    async def job(self, viewer: Viewer, job_id: str) -> Row | None:
        """One job."""
        ...

    async def has_job(self, task_id: str, job_id: str) -> bool:
        """Whether a job is one of a task; whoever asks reaches the task."""
        ...

    def job_now(self, job: Row) -> Row:
        """A job as it is now: one that runs past its lease has lost it."""
        ...

    async def move_task(
        self, tx: Transaction, viewer: Viewer, task_id: str, to: TaskStatus, reason: str | None
    ) -> Row | None:
        """Give a task another status; closing it cancels its open jobs.

        Canceling it cancels all that depends on it, too. It runs once all that it depends on is
        completed.
        Raises `Conflict` for a move that there is not, `Forbidden` where the caller only reads.
        """
        ...

    async def move_job(
        self,
        tx: Transaction,
        viewer: Viewer,
        job_id: str,
        to: JobStatus,
        *,
        node_id: str | None = None,
        also: Mapping[str, Any] = NOTHING,
    ) -> Row | None:
        """Give a job another status, and store what else is told of it.

        One of a closed task neither runs nor waits again; one of a task that waits does not run.
        Raises `Conflict` for a move that there is not, and where a node is named that has not got
        the job; `Forbidden` where the caller only reads.
        """
        ...

    async def lease_job(
        self, tx: Transaction, viewer: Viewer, job_id: str, node_id: str, until: str
    ) -> Row | None:
        """Let a node run a queued job until a moment, or run it for longer where it runs there.

        Raises `Conflict` for one that runs elsewhere, with or without a lease, or has ended, and
        for a drained node that does not run it already; `NotFound` where there is no such node.
        """
        ...

    async def keep_open(self, tx: Transaction, task_id: str) -> bool:
        """Whether there is such a task; nobody closes it before the transaction ends.

        Raises `Conflict` where it is closed.
        """
        ...

    async def keep_statuses(self, tx: Transaction, task_ids: Sequence[str]) -> Mapping[str, str]:
        """The status of each of these tasks that there is.

        Nobody changes it before the transaction ends.
        """
        ...

    async def project(self, viewer: Viewer, project_id: str | None, slug: str | None) -> Row | None:
        """One project, by its id or its slug."""
        ...

    async def projects(
        self,
        viewer: Viewer,
        text: str | None,
        after: str | None,
        limit: int,
        *,
        denied: DeniedProjects,
    ) -> ListPage:
        """Projects by slug, of those that contain a text; none that are denied."""
        ...

    async def reaches(self, viewer: Viewer, scope_type: ScopeType, scope_id: str) -> bool:
        """Whether a caller reaches a scope of records, and whether there is such a scope."""
        ...

    async def changes(self, viewer: Viewer, scope_type: ScopeType, scope_id: str) -> bool:
        """Whether a caller reaches a scope to change its records.

        Raises `Forbidden` where the caller's role only reads.
        """
        ...

    async def layers(self, viewer: Viewer, task_id: str, *, sources: bool) -> Layers | None:
        """The preferences that win, or are to be reported, for a task; None without such a task.

        Those of its user and groups only for that user, and for callers without one. What does not
        fit one answer is left out, of groups first; an answer with sources holds less.
        """
        ...
