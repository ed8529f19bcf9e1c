"""Telling the provider of contacts what it does not know yet, as background work."""

from typing import Any

from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, Workflow


async def sync(run: Run[BackendWorld]) -> dict[str, Any]:
    """Tell it all that waits."""
    return dict(await run.world.contacts.sync())


async def has_work(world: BackendWorld) -> bool:
    """Whether something waits."""
    return await world.contacts.has_work()


SYNC_CONTACTS = Workflow(
    name="sync-contacts",
    summary="Tells the provider of contacts what it did not take before.",
    run=sync,
    schedule="17 * * * *",
    when=has_work,
)
