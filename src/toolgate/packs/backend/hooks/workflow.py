"""Webhooks as background work: noted before they are sent, and again until they are answered.

A run is the intent. It is stored before the first request, and each attempt before it is made; one
that a crash cuts off is made again, by whichever process goes on. So a receiver may be asked more
than once, always under the same id, and the result says how often.
"""

from typing import TYPE_CHECKING, Any

from toolgate.gate.errors import ResultTooLarge, RouteFailed
from toolgate.packs.backend.hooks.running import HookMissing
from toolgate.workflows.declarations import Run, RunFailed, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

CALL_WEBHOOK = "call-webhook"


async def call_webhook(run: "Run[BackendWorld]") -> dict[str, Any]:
    """One attempt."""
    name, id = run.arguments["hook"], run.arguments["call"]
    attempt = run.state.get("attempts", 0) + 1
    await run.checkpoint({"attempts": attempt}, message=f"attempt {attempt}")
    try:
        answer = await run.world.hooks.send(name, id, attempt)
    except HookMissing:
        raise RunFailed(f"There is no hook {name} any more.") from None
    except (RouteFailed, ResultTooLarge) as refused:
        raise RunFailed(str(refused)) from refused
    return {"answer": answer, "attempts": attempt}


WORKFLOW: "Workflow[BackendWorld]" = Workflow(
    name=CALL_WEBHOOK,
    summary="Calls the webhook of a hook, until it answers.",
    run=call_webhook,
    acts_as=("run_hook",),
    alone=False,
)
