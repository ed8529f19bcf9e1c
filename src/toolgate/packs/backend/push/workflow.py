"""Sending a notification, as background work."""

from typing import Any

from toolgate.packs.backend.push.delivery import Audience
from toolgate.packs.backend.push.port import Notification
from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, Workflow

DIGEST = "digest"
"""The argument that is the same for the same notification to the same people."""


async def send(run: Run[BackendWorld]) -> dict[str, Any]:
    """Send it to all who are left; the tally."""
    notification = Notification.of(run.arguments["notification"])
    audience = Audience(**run.arguments["filters"])
    return (await run.world.deliveries.deliver(notification, audience, run)).state()


SEND_NOTIFICATION = Workflow(
    name="send-notification",
    summary="Sends a push notification, batch by batch.",
    run=send,
    alike=DIGEST,
)
