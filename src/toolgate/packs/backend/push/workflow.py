"""Sending a notification, as background work."""

from datetime import timedelta
from typing import Any

from toolgate.packs.backend.push.delivery import Audience
from toolgate.packs.backend.push.port import Notification
from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, RunFailed, Workflow

JOINED_FOR = timedelta(hours=12)
"""So long after it failed, the same call again goes on with a run. A reminder with the same words
every day is another one."""

DIGEST = "digest"
"""The argument that is the same for the same notification to the same people."""


async def send(run: Run[BackendWorld]) -> dict[str, Any]:
    """Send it to all who are left; the tally."""
    notification = Notification.of(run.arguments["notification"])
    audience = Audience(**run.arguments["filters"])
    deliveries = run.world.deliveries
    tally = await deliveries.deliver(notification, audience, run)
    if tally.error:
        every = (await deliveries.count(audience, tally)).subscribers
        raise RunFailed(
            f"{tally.error} {tally.sent} of {every} messages were sent. Once that is mended, "
            f"`toolgate workflows retry {run.id}` sends the rest, and nothing twice; within "
            f"{JOINED_FOR // timedelta(hours=1)} hours the same call again does so too."
        )
    return tally.state()


SEND_NOTIFICATION = Workflow(
    name="send-notification",
    summary="Sends a push notification, batch by batch.",
    run=send,
    acts_as=("send_notification",),
    alike=DIGEST,
)
