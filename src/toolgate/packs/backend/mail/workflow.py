"""Delivering what is due, as background work."""

from typing import Any

from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, Workflow


async def deliver_due(run: Run[BackendWorld]) -> dict[str, Any]:
    """Send what is due; how many mails came to which end."""
    return await run.world.mail.sending.deliver_due()


async def has_work(world: BackendWorld) -> bool:
    """Whether a mail is due."""
    return await world.mail.sending.has_work()


EMAIL_QUEUE = Workflow(
    name="frequent/email-queue",
    summary="Sends mails whose time has come, and finds those that a killed server left behind.",
    run=deliver_due,
    acts_as=("send_email",),
    schedule="* * * * *",
    when=has_work,
)
