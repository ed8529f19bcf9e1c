"""Scheduled work, started by hand."""

from typing import Any, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.scheduled import cron_ids, find_cron
from toolgate.packs.backend.world import BackendWorld

family = Family("operations", BACKEND)

WAIT_SECONDS = 20.0
"""Then the answer is that it goes on."""
MAX_ID = 100
RUN_CRON = "run_cron"


class CronRequest(Input):
    """Which work."""

    id: str = Field(
        max_length=MAX_ID,
        description="`daily`, `frequent`, or one of their parts, such as `daily/reset-usage`; its "
        "short form `reset-usage` is understood.",
    )

    @model_validator(mode="before")
    @classmethod
    def _told_without_id(cls, values: Any) -> Any:
        if isinstance(values, dict) and not cast("dict[str, Any]", values).get("id", None):
            raise PydanticCustomError(TOLD_MISSING, "Missing parameter {id}")
        return cast("Any", values)


class CronRun(Output):
    """What became of it."""

    id: str = Field(description="The long form of the id.")
    run: str = Field(description="The run, for `toolgate workflows show`.")
    status: str = Field(
        description="`succeeded`, `failed`, `cancelled`; `running` or `queued` where it goes on "
        "after this answer."
    )
    result: dict[str, Any] | None = Field(
        default=None, description="What it says about its work, once it has succeeded."
    )
    error: str | None = Field(
        default=None, description="Why it, or its last attempt, did not succeed."
    )


@family.tool(
    RUN_CRON,
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Trigger a cron job by ID",
    writes=[Target.OUTSIDE],
    seconds=60,
    slow=True,
    route=Route(f"{ROUTES}/admin/cron", method="POST"),
    example={"id": "daily"},
)
async def run_cron(ctx: Context[BackendWorld], args: CronRequest) -> CronRun:
    """Start scheduled work by hand, without waiting for its time.

    `daily` and `frequent` start all of their parts. Work that is under way already is joined, not
    started twice. What takes longer than 20 seconds goes on after the answer, which has the id of
    its run.
    """
    ids = cron_ids(ctx.world.workflows.names)
    id = find_cron(ids, args.id)
    if id is None:
        valid = ", ".join(ids)
        raise InvalidArguments([Problem("id", "value", f"id must be one of: {valid}")])
    return await start_cron(ctx, id)


async def start_cron(ctx: Context[BackendWorld], id: str) -> CronRun:
    """Start the work of a long id, and wait for it a while."""
    workflows = ctx.world.workflows
    run = await workflows.start_now(id, call=ctx.tx.call)
    record = await workflows.wait(run, ctx.report, seconds=WAIT_SECONDS)
    told: dict[str, Any] = {"result": record.result, "error": record.error}
    return CronRun(
        id=id,
        run=run,
        status=record.status.value,
        **{name: value for name, value in told.items() if value is not None},
    )
