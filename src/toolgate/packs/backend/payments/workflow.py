"""The nightly comparison with the processors, as background work."""

from typing import Any

from toolgate.packs.backend.payments.reconciliation import (
    book_due,
    forget_old,
    repair_some,
    settle_intents,
)
from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, Workflow


async def reconcile(run: Run[BackendWorld]) -> dict[str, Any]:
    """Settle what is open, book what is due, compare every record, forget what is old.

    Goes on where it stopped.
    """
    payments = run.world.payments
    state: dict[str, Any] = dict(run.state)
    if "settled" not in state:
        state["settled"] = await settle_intents(payments)
        state["booked"] = await book_due(payments)
        state |= {"after": None, "compared": 0, "repaired": 0}
        await run.checkpoint(state, done=0, message="comparing records")
    while True:
        after, compared, repaired = await repair_some(payments, state["after"])
        state["compared"] += compared
        state["repaired"] += repaired
        state["after"] = after
        await run.checkpoint(state, done=state["compared"])
        if after is None:
            break
    forgotten = (await forget_old(payments))._asdict()
    told = {name: state[name] for name in ("settled", "booked", "compared", "repaired")}
    return {**told, "forgotten": forgotten}


RECONCILE_PAYMENTS = Workflow(
    name="daily/reconcile-payments",
    summary="Compares the records of subscriptions with the payment processor, and repairs them.",
    run=reconcile,
)
