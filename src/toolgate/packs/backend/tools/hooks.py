"""Hooks, run by hand."""

from typing import Any

from pydantic import Field, RootModel

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound, RouteFailed, Unavailable, UnknownTool
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.hooks.registry import Hook, HookContext
from toolgate.packs.backend.hooks.running import HookMissing
from toolgate.packs.backend.hooks.workflow import CALL_WEBHOOK
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.scheduled import cron_ids, find_cron
from toolgate.packs.backend.tools import cron
from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import RunStatus

family = Family("operations", BACKEND)

CRON = "cron/"
MAX_PATH = 200
MORE_SECONDS = 2.0
"""Than a receiver has: until a worker takes the run, and stores what became of it."""


class HookRequest(Input):
    """Which hook."""

    path: str = Field(
        min_length=1,
        max_length=MAX_PATH,
        description="Name of a hook in the file that the setting `backend.hooks` names; or `cron/` "
        "and the id of scheduled work, such as `cron/daily/reset-usage`.",
    )


class HookResult(RootModel[dict[str, Any]], Output):  # pyright: ignore[reportIncompatibleMethodOverride]
    """What the hook answers; `success` where it answers nothing, `result` for what is no object."""


@family.tool(
    "run_hook",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Execute a custom hook",
    writes=[Target.OUTSIDE],
    seconds=60,
    slow=True,
    route=Route(f"{ROUTES}/admin/hook", method="POST"),
    example={"path": "cron/daily"},
)
async def run_hook(ctx: Context[BackendWorld], args: HookRequest) -> HookResult:
    """Run a hook of the application: a function or a signed webhook that an operator registered.

    Scheduled work is run with `cron/` before its id, for whoever may call `run_cron`.
    """
    not_found = NotFound(f"Hook not found: {args.path}")
    if args.path.startswith(CRON):
        ids = cron_ids(ctx.world.workflows.names)
        id = find_cron(ids, args.path.removeprefix(CRON))
        if id is None:
            raise not_found
        try:
            ctx.world.tools.check(ctx.principal, cron.RUN_CRON)
        except UnknownTool:  # what is hidden from a caller is not there
            raise not_found from None
        return HookResult((await cron.start_cron(ctx, id)).body())
    try:
        hook = ctx.world.hooks.find(args.path)
    except HookMissing:
        raise not_found from None
    if hook.url is not None:
        return _result(await _call_webhook(ctx, args.path, hook))
    call = HookContext(ctx.world.documents, ctx.principal, ctx.tx.call or ctx.request_id)
    return _result(await ctx.world.hooks.run(args.path, call))


async def _call_webhook(ctx: Context[BackendWorld], name: str, hook: Hook) -> Any:
    """Start a run, which is what is certain, and wait for its first attempt."""
    workflows = ctx.world.workflows
    call = ctx.tx.call or ctx.request_id
    arguments = {"hook": name, "call": call}
    run = await workflows.start_now(CALL_WEBHOOK, arguments, key=call, call=ctx.tx.call)
    record = await workflows.wait(run, ctx.report, seconds=hook.seconds + MORE_SECONDS, attempts=1)
    if record.status is RunStatus.SUCCEEDED:
        return (record.result or {}).get("answer")
    if record.ended:
        words = record.error or f"The run was {record.status.value}."
        raise RouteFailed(f"{words} It is not tried again (run {run}).")
    words = record.error or f"The hook {name} has not answered yet."
    raise Unavailable(
        f"{words} It goes on by itself under the id {call}, so do not call again: "
        f"`toolgate workflows show {run}` tells what becomes of it."
    )


def _result(answer: Any) -> HookResult:
    if isinstance(answer, dict) and answer:
        return HookResult.model_validate(answer)
    return HookResult({"success": True} if answer in (None, {}) else {"result": answer})
