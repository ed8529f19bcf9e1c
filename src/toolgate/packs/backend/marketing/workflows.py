"""Workflows of marketing: what is due begins, and what has begun is sent."""

from typing import TYPE_CHECKING, Any

from toolgate.packs.backend.marketing.campaigns import COLLECTION, Status, changed
from toolgate.packs.backend.marketing.channels import channel_of
from toolgate.packs.backend.marketing.journal import Journal
from toolgate.packs.backend.marketing.marketing import SEND
from toolgate.packs.backend.marketing.sending import Sender, has_succeeded, told
from toolgate.ports.documents import Fields
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld


async def send(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Send one campaign, and store what came of it."""
    marketing = run.world.marketing
    id: str = run.arguments["campaign"]
    campaign = await marketing.documents.get(COLLECTION, id)
    if campaign is None or campaign.get("run") != run.id:
        return {"campaign": id, "delivery": "not sent: it is no longer there"}
    channel = await channel_of(marketing, id, campaign)
    journal = Journal(marketing.journals, run.id)
    collected: int | None = run.arguments.get("collected")
    counts = await Sender(run, id, channel, marketing.deliveries, journal, collected).send()
    status = Status.SENT if has_succeeded(counts) else Status.FAILED
    delivery = {state.value: number for state, number in counts.items()}

    async def work(current: Fields) -> list[tuple[str, Fields]]:
        now = marketing.clock()
        return [(id, changed(current, now, status=status.value, delivery=delivery))]

    async with run.transaction() as tx:
        await marketing.campaigns.change(tx, id, work)
    return {"campaign": id, "delivery": told(counts) or "nobody to send it to"}


async def has_due(world: "BackendWorld") -> bool:
    """Whether a campaign is due, or under way."""
    return await world.marketing.has_due()


async def begin_due(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Begin the campaigns that are due."""
    return dict(await run.world.marketing.begin_due())


WORKFLOWS: "tuple[Workflow[BackendWorld], ...]" = (
    Workflow(
        name=SEND,
        summary="Sends one campaign.",
        run=send,
        acts_as=("create_campaign",),
        alone=False,
        attempts=20,
    ),
    Workflow(
        name="frequent/marketing-campaigns",
        summary="Begins the campaigns that are due, every minute.",
        run=begin_due,
        acts_as=("create_campaign",),
        schedule="* * * * *",
        when=has_due,
    ),
)
