"""Tasks and jobs: what agents are to do, and who does it."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from toolgate.gate.audit_records import timestamp
from toolgate.gate.errors import Conflict, NotFound
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.access import viewer_of
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, Uuid
from toolgate.packs.orchestrator.tools.json_values import Json
from toolgate.packs.orchestrator.tools.kept_values import check_kept
from toolgate.packs.orchestrator.tools.operator.lists import (
    Ctx,
    Handle,
    Text,
    known,
    listed,
    needed,
)
from toolgate.packs.orchestrator.tools.tasks import Job, Task, job_of, task_of
from toolgate.packs.orchestrator.vocabulary import IN_VAIN, JobStatus, TaskStatus
from toolgate.packs.orchestrator.work import Dependencies

family = Family("operator_work", ORCHESTRATOR)

MAX_DEPENDENCIES = 100
MAX_SECONDS = 10_800
TASK = "00000000-0000-4000-8000-0000000000b1"
JOB = "00000000-0000-4000-8000-0000000000c2"


class NewTask(Input):
    """A task to be created."""

    prompt: Text = Field(description="What is to be done.")
    user_id: Handle | None = Field(default=None, description="The user whose task it is.")
    project_id: Uuid | None = Field(default=None, description="The project it belongs to.")
    acceptance_criteria: Json = Field(default=None, description="When it is done.")
    depends_on: Annotated[list[Uuid], Field(max_length=MAX_DEPENDENCIES)] = Field(
        default=[], description="Tasks that have to be completed before it runs."
    )


class TasksListed(Paged):
    """Which tasks."""

    status: TaskStatus | None = Field(default=None, description="Of this status only.")
    user_id: Handle | None = Field(default=None, description="Of this user only.")
    project_id: Uuid | None = Field(default=None, description="Of this project only.")
    in_vain: bool = Field(
        default=False,
        description="Only those that are pending and wait for ever, since one that they depend on "
        "is failed, canceled or superseded.",
    )


class Summary(Input):
    """What came of a task."""

    task_id: Uuid = Field(description="The task's id.")
    summary: Text = Field(description="What came of it.")


class NewJob(Input):
    """A job to be created."""

    task_id: Uuid = Field(description="The task it is for.")
    payload: Json = Field(default=None, description="What the node is given.")


class JobsListed(Paged):
    """Which jobs."""

    status: JobStatus | None = Field(default=None, description="Of this stored status only.")
    task_id: Uuid | None = Field(default=None, description="Of this task only.")


class Lease(Input):
    """A node takes a job."""

    job_id: Uuid = Field(description="The job's id.")
    node_id: Handle = Field(description="The node that does it.")
    seconds: Whole = Field(
        default=3600, ge=1, le=MAX_SECONDS, description="How long it may keep it."
    )


class End(Input):
    """How a job ended."""

    job_id: Uuid = Field(description="The job's id.")
    status: Literal["completed", "failed"] = Field(description="How it ended.")
    result: Json = Field(default=None, description="What the node gave back.")
    node_id: Handle | None = Field(
        default=None,
        description="The node that gave it back; refused where the job is another's by now.",
    )


class Tasks(Output):
    """A page of tasks."""

    entries: list[Task] = Field(description="The tasks, oldest first.")
    next_cursor: NextCursor = ""


class Jobs(Output):
    """A page of jobs."""

    entries: list[Job] = Field(description="The jobs, oldest first.")
    next_cursor: NextCursor = ""


@family.tool(
    "operator.task.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a task",
    example={"prompt": "Write the imprint.", "user_id": "alice"},
)
async def create_task(ctx: Ctx, args: NewTask) -> Task:
    """Create a task that is pending.

    Canceling one that it depends on cancels it too. It cannot depend on one that is failed,
    canceled or superseded.
    """
    await check_kept(
        ctx.principal.id, prompt=args.prompt, acceptance_criteria=args.acceptance_criteria
    )
    store = ctx.world.administration
    if args.user_id is not None:
        await needed(ctx, "user", id=args.user_id)
    if args.project_id is not None:
        await needed(ctx, "project", id=args.project_id)
    statuses = await _check_dependencies(ctx, args.depends_on)
    row: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "status": "pending",
        "prompt": args.prompt,
        "acceptance_criteria": args.acceptance_criteria,
        "created_by": args.user_id,
        "project_id": args.project_id,
    }
    stored = await store.create(ctx.tx, "task", row)
    for one in dict.fromkeys(args.depends_on):
        link = {"task_id": row["id"], "depends_on": one}
        await store.create(ctx.tx, "dependency", link)
    assert stored is not None, "its id is new"
    return task_of(stored, Dependencies(sorted({*args.depends_on}), statuses))


async def _check_dependencies(ctx: Ctx, task_ids: list[str]) -> frozenset[str]:
    """Raise where a task would wait for ever; the statuses of those it depends on."""
    statuses = await ctx.world.work.keep_statuses(ctx.tx, task_ids)
    for one in task_ids:
        status = statuses.get(one)
        if status is None:
            raise NotFound(f"There is no task {one!r}.")
        if status in IN_VAIN:
            raise Conflict(
                f"Task {one!r} is {status} and will not be completed, so what depends on it would "
                "wait for ever. Leave it out of depends_on.",
                task_status=status,
            )
    return frozenset(statuses.values())


@family.tool("operator.task.list", role=Role.ADMIN, effect=Effect.READ, title="List tasks")
async def list_tasks(ctx: Ctx, args: TasksListed) -> Tasks:
    """List all tasks, oldest first."""
    await known(ctx, "user", args.user_id)
    await known(ctx, "project", args.project_id)
    where = {
        "status": args.status,
        "created_by": args.user_id,
        "project_id": args.project_id,
        "in_vain": args.in_vain or None,
    }
    rows, more = await listed(ctx, "task", args, where)
    found = await ctx.world.work.dependencies(viewer_of(ctx.principal), [row["id"] for row in rows])
    return Tasks(entries=[task_of(row, found[row["id"]]) for row in rows], **more)


@family.tool(
    "operator.task.summarize",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Say what came of a task",
    example={"task_id": TASK, "summary": "The start page is built."},
)
async def summarize(ctx: Ctx, args: Summary) -> Task:
    """Store what came of a task, for those who read it later."""
    await check_kept(ctx.principal.id, summary=args.summary)
    await needed(ctx, "task", id=args.task_id)
    values = {"summary": args.summary}
    key = {"id": args.task_id}
    row = await ctx.world.administration.update(ctx.tx, "task", key, values)
    assert row is not None, "it was needed"
    found = await ctx.world.work.dependencies(viewer_of(ctx.principal), [args.task_id])
    return task_of(row, found[args.task_id])


@family.tool(
    "operator.job.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a job",
    example={"task_id": TASK, "payload": {"steps": ["test"]}},
)
async def create_job(ctx: Ctx, args: NewJob) -> Job:
    """Create a job of a task that is not closed, queued until a node takes it."""
    await check_kept(ctx.principal.id, payload=args.payload)
    if not await ctx.world.work.keep_open(ctx.tx, args.task_id):
        raise NotFound(f"There is no task {args.task_id!r}.")
    row = {"id": str(uuid.uuid4()), "status": "queued", **args.model_dump()}
    return job_of(await ctx.world.administration.create(ctx.tx, "job", row))


@family.tool("operator.job.list", role=Role.ADMIN, effect=Effect.READ, title="List jobs")
async def list_jobs(ctx: Ctx, args: JobsListed) -> Jobs:
    """List all jobs, oldest first; one whose lease has run out is shown so."""
    await known(ctx, "task", args.task_id)
    where = {"status": args.status, "task_id": args.task_id}
    rows, more = await listed(ctx, "job", args, where)
    return Jobs(entries=[job_of(ctx.world.work.job_now(row)) for row in rows], **more)


@family.tool(
    "operator.job.lease",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Lease a job to a node",
    example={"job_id": JOB, "node_id": "worker-01"},
)
async def lease(ctx: Ctx, args: Lease) -> Job:
    """Let a node run a queued job for some time; past that the lease has expired.

    A job that runs is leased only to the node that it runs on, for longer. One that was given the
    status running without a lease has no end of it: no other node gets it until it is queued again.
    A job of a closed task runs no more. A drained node gets only what it runs already, for longer.
    """
    until = datetime.fromisoformat(timestamp()) + timedelta(seconds=args.seconds)
    ends = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    viewer = viewer_of(ctx.principal)
    return job_of(await ctx.world.work.lease_job(ctx.tx, viewer, args.job_id, args.node_id, ends))


@family.tool(
    "operator.job.finish",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="End a job with its result",
    example={"job_id": JOB, "status": "completed", "result": {"passed": 12}},
)
async def finish(ctx: Ctx, args: End) -> Job:
    """End a running job, and keep what the node gave back."""
    await check_kept(ctx.principal.id, result=args.result)
    viewer = viewer_of(ctx.principal)
    told = {"result": args.result}
    ended = await ctx.world.work.move_job(
        ctx.tx, viewer, args.job_id, args.status, node_id=args.node_id, also=told
    )
    return job_of(ended)
