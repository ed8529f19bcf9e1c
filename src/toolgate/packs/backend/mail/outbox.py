"""The embedded mailer: mails stay in the queue of the database, where they can be looked at."""

from collections.abc import Sequence

from toolgate.packs.backend.mail.message import Message, Recipient
from toolgate.packs.backend.mail.port import Delivery, HandingOver, Outcome, Settled

KEPT = "kept in the outbox: the setting mail.url names no server, so nobody has got it yet"


class OutboxMailer:
    """Takes every mail; whoever uses it stores the mail as one that waits."""

    provider = "outbox"
    holds = False
    delivers = False

    async def send(
        self,
        message: Message,
        recipients: Sequence[Recipient],
        settled: Settled | None = None,
        handing_over: HandingOver | None = None,
    ) -> Sequence[Delivery]:
        """Nothing leaves."""
        return [Delivery(one.address.email, Outcome.KEPT, KEPT) for one in recipients]

    async def check(self) -> str:
        """It is always there."""
        return "mails wait in the outbox (setting mail.url)"

    async def close(self) -> None:
        """Nothing is open."""
