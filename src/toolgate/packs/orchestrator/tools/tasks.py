"""Tasks and jobs: read, and moved from one status to the next."""

from typing import Any

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import Forbidden, NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.access import Viewer, viewer_of
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, JobId, Reason, TaskId
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.vocabulary import CLOSED, JobStatus, TaskStatus
from toolgate.packs.orchestrator.work import Dependencies, Waiting
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("tasks", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
NO_TASK, NO_JOB = "Task not found", "Job not found"
TASK = "00000000-0000-4000-8000-0000000000b1"
JOB = "00000000-0000-4000-8000-0000000000c1"


class ByTask(Input):
    """Which task."""

    task_id: TaskId = Field(description="The task's id, a UUID.")


class ByJob(Input):
    """Which job."""

    job_id: JobId = Field(description="The job's id, a UUID.")


class TaskMove(ByTask):
    """A task's next status."""

    status: TaskStatus = Field(description="The next status.")
    reason: Reason | None = Field(default=None, description="Why.")


class JobMove(ByJob):
    """A job's next status."""

    status: JobStatus = Field(description="The next status.")


class Task(Output):
    """A task."""

    id: str = Field(description="The task's id.")
    status: TaskStatus = Field(description="How far it is.")
    closed: bool = Field(description="Whether it has ended: its status changes no more.")
    prompt: str = Field(description="What is to be done.")
    summary: str | None = Field(description="What came of it.")
    acceptance_criteria: Any = Field(description="When it is done, as its author put it.")
    created_by: str | None = Field(description="The user whose task it is.")
    project_id: str | None = Field(description="The project it belongs to.")
    plan_id: str | None = Field(description="The plan it is a part of.")
    depends_on: list[str] = Field(
        description="Tasks that have to be completed before it runs, of those you may read."
    )
    waiting: Waiting = Field(
        description="Whether it is pending and waits for one of them: no, yes, or in_vain, where "
        "one is failed, canceled or superseded, so that it will never run."
    )
    status_reason: str | None = Field(description="Why it has this status.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")


class Job(Output):
    """A job: one attempt at a part of a task, on a node."""

    id: str = Field(description="The job's id.")
    task_id: str = Field(description="The task it is for.")
    status: JobStatus = Field(description="How far it is.")
    node_id: str | None = Field(description="The node that does it.")
    payload: Any = Field(description="What the node was given.")
    result: Any = Field(description="What the node gave back.")
    lease_expires_at: str | None = Field(description="Until when the node may keep it, ISO 8601.")
    started_at: str | None = Field(description="When it began, ISO 8601.")
    ended_at: str | None = Field(description="When it ended, ISO 8601.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")


@family.tool(
    "db.task.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a task",
    not_found=NO_TASK,
    example={"task_id": TASK},
)
async def get_task(ctx: Ctx, args: ByTask) -> Task:
    """Read one task, with what it depends on."""
    viewer = viewer_of(ctx.principal)
    return await _shown(ctx, viewer, await ctx.world.work.task(viewer, args.task_id))


@family.tool(
    "db.task.update_status",
    role=Role.ADMIN,
    effect=Effect.DESTROY,  # a task that is closed, and the jobs canceled with it, stay so
    writes=[Target.TABLES],
    title="Update a task's status",
    not_found=NO_TASK,
    example={"task_id": TASK, "status": "completed"},
)
async def update_task(ctx: Ctx, args: TaskMove) -> Task:
    """Give a task its next status.

    pending becomes running, canceled or superseded; running becomes completed, failed, canceled or
    superseded; these stay: it is closed, and its open jobs are canceled. Canceling also cancels
    every open task that depends on it. A task runs once all that it depends on is completed. The
    same status again changes nothing.
    """
    viewer = viewer_of(ctx.principal)
    if viewer.job_id is not None:
        message = "A key that is bound to a job moves this job, but not the task."
        raise Forbidden(message, rule="bound-key")
    moved = await ctx.world.work.move_task(ctx.tx, viewer, args.task_id, args.status, args.reason)
    return await _shown(ctx, viewer, moved)


@family.tool(
    "db.job.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a job",
    not_found=NO_JOB,
    example={"job_id": JOB},
)
async def get_job(ctx: Ctx, args: ByJob) -> Job:
    """Read one job, with what the node was given and gave back."""
    return job_of(await ctx.world.work.job(viewer_of(ctx.principal), args.job_id))


@family.tool(
    "db.job.update_status",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Update a job's status",
    not_found=NO_JOB,
    example={"job_id": JOB, "status": "completed"},
)
async def update_job(ctx: Ctx, args: JobMove) -> Job:
    """Give a job its next status.

    queued becomes running or canceled; running becomes completed, failed, canceled or lease_expired
    (by itself when its lease ends); lease_expired becomes queued, failed or canceled; the others
    stay. A job of a closed task becomes neither running nor queued. The same status again changes
    nothing.
    """
    viewer = viewer_of(ctx.principal)
    return job_of(await ctx.world.work.move_job(ctx.tx, viewer, args.job_id, args.status))


async def _shown(ctx: Ctx, viewer: Viewer, row: Row | None) -> Task:
    if row is None:
        raise NotFound(NO_TASK)
    found = await ctx.world.work.dependencies(viewer, [row["id"]])
    return task_of(row, found[row["id"]])


def task_of(row: Row, before: Dependencies) -> Task:
    """A task as an answer shows it."""
    status = row["status"]
    shown = {name: row[name] for name in Task.model_fields if name in row}
    return Task(
        closed=status in CLOSED,
        depends_on=list(before.ids),
        waiting=before.waiting(status),
        **shown,
    )


def job_of(row: Row | None) -> Job:
    """A job as an answer shows it; raises where there is none."""
    if row is None:
        raise NotFound(NO_JOB)
    return Job(**{name: row[name] for name in Job.model_fields})
