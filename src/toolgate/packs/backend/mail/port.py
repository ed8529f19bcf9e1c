"""The port: what hands a mail over to whoever delivers it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from toolgate.packs.backend.mail.message import Message, Recipient

MAX_WORDS = 300
"""Of what a server says; it is told on, and stored."""


class Outcome(StrEnum):
    """What became of a mail to one recipient."""

    ACCEPTED = "accepted"
    """The server has it, and answers for it from now on."""
    KEPT = "kept"
    """In the outbox: no server has it."""
    REFUSED = "refused"
    """The server surely did not take it."""
    SKIPPED = "skipped"
    """It was not handed over: the recipient no longer wants mail of its group."""
    UNKNOWN = "unknown"
    """It was handed over and not confirmed: it may have been taken. Never sent again by itself."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a mail to one recipient, in the server's words."""

    email: str
    outcome: Outcome
    words: str
    temporary: bool = False
    """Of a refusal: the same may be taken later."""
    unreachable: bool = False
    """Of a refusal: the server takes nothing at all at present."""


Settled = Callable[[Delivery], Awaitable[None]]
"""Told of each recipient before the next one's turn, so that a crash leaves little unknown; a
mailer that hands all of them over at once tells nothing."""


HandingOver = Callable[[], None]
"""Called at the last moment before the server can take a mail: without it, it surely did not.
Only campaigns ask for it, and theirs are the mails that others need not wait behind."""


class Mailer(Protocol):
    """Hands mails over.

    Any number of tasks may use it at once; it bounds its connections itself. A campaign calls
    `send` with one recipient at a time from as many tasks as it likes.
    """

    provider: str
    """What it is, as answers and records name it."""
    holds: bool
    """Whether it keeps a mail until its `send_at`."""
    delivers: bool
    """Whether mails leave; the outbox keeps them."""

    async def send(
        self,
        message: Message,
        recipients: Sequence[Recipient],
        settled: Settled | None = None,
        handing_over: HandingOver | None = None,
    ) -> Sequence[Delivery]:
        """Hand a message over for each recipient; what went wrong is in the answer, each one's own.

        Where it is cancelled, those not settled are unknown.
        """
        ...

    async def check(self) -> str:
        """Connect and say what was found, without a mail; raises `MailUnavailable`."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class MailUnavailable(Exception):
    """No mail can be handed over; the message says why and is fit for a caller."""


def server_words(code: int, text: str) -> str:
    """What a server said, on one line, without what a terminal would act on."""
    line = " ".join(text.split())
    plain = "".join(one if one.isprintable() else "?" for one in line)
    return f"{code} {plain}"[:MAX_WORDS].strip()
