"""Mails that are not done with: held until their time, waiting, on their way, or unknown.

What is done is no longer here, but in the documents `emails/ID`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.mail.addresses import Address
from toolgate.packs.backend.mail.message import Message, Recipient
from toolgate.packs.backend.mail.port import Delivery, Outcome

Record = dict[str, Any]


class Status(StrEnum):
    """Where a mail in the queue is."""

    QUEUED = "queued"
    """Held until it is due."""
    WAITING = "waiting"
    """In the outbox: nobody delivers it before an operator asks for that."""
    SENDING = "sending"
    """Being handed over, or it was when its server was killed."""
    UNKNOWN = "unknown"
    """It may have been taken. An operator says what became of it."""


@dataclass(frozen=True, slots=True)
class QueuedRecipient:
    """A recipient, and what became of it so far."""

    recipient: Recipient
    delivery: Delivery | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be handed over."""
        done = self.delivery
        return done is None or (done.outcome is Outcome.REFUSED and done.temporary)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMail:
    """A mail with its recipients."""

    message: Message
    recipients: tuple[QueuedRecipient, ...]
    options: Record = field(default_factory=dict[str, Any])
    """What was asked for, as records and answers tell it."""
    status: Status = Status.QUEUED
    due_at: datetime
    attempts: int = 0

    @property
    def id(self) -> str:
        """The message's."""
        return self.message.id

    def open_recipients(self) -> list[Recipient]:
        """Those to whom it is still to be handed over."""
        return [one.recipient for one in self.recipients if one.is_open]

    def deliveries(self) -> list[Delivery]:
        """What became of it, for those of whom that is known."""
        return [one.delivery for one in self.recipients if one.delivery is not None]

    def with_deliveries(self, done: Sequence[Delivery]) -> "QueuedMail":
        """The same with what has become of some recipients."""
        by_email = {one.email: one for one in done}
        recipients = tuple(
            replace(one, delivery=by_email.get(one.recipient.address.email, one.delivery))
            for one in self.recipients
        )
        return replace(self, recipients=recipients)


class MailQueue(Protocol):
    """The mails that are not done with."""

    async def add(
        self, tx: Transaction, mail: QueuedMail, *, digest: str | None, lease: datetime | None
    ) -> str | None:
        """Store a mail; the id of the open one with the same digest, where there is one."""
        ...

    async def get(self, mail_id: str) -> QueuedMail | None:
        """One mail."""
        ...

    async def page(
        self, status: Status | None, after: str | None, limit: int
    ) -> Sequence[QueuedMail]:
        """Mails by their ids, which is the order in which they came."""
        ...

    async def due(self, now: datetime, limit: int) -> Sequence[str]:
        """The ids of held mails whose time has come, those that are due longest first."""
        ...

    async def claim(self, mail_id: str, now: datetime, lease: datetime) -> QueuedMail | None:
        """Take a held mail to send it; None where somebody else was faster."""
        ...

    async def release(self, mail_id: str) -> bool:
        """Let a mail of the outbox be delivered now; False where there is none."""
        ...

    async def note(self, mail: QueuedMail, lease: datetime) -> None:
        """Store what became of recipients so far."""
        ...

    async def settle(self, tx: Transaction, mail: QueuedMail) -> None:
        """Store what became of a mail that is kept: held again, or unknown."""
        ...

    async def remove(self, tx: Transaction, mail_id: str) -> bool:
        """A mail is done with; False where it was not there."""
        ...

    async def lost(self, now: datetime, limit: int) -> Sequence[QueuedMail]:
        """Mails whose server did not come back to say what became of them."""
        ...


def message_record(message: Message) -> Record:
    """A message as JSON keeps it."""
    record = asdict(message)
    record["date"] = message.date.isoformat()
    record["send_at"] = message.send_at.isoformat() if message.send_at else None
    record["headers"] = dict(message.headers)
    return record


def read_message(record: Record) -> Message:
    """The message that `message_record` wrote."""
    send_at = record["send_at"]
    parts: Record = {
        "sender": Address(**record["sender"]),
        "to": tuple(Address(**one) for one in record["to"]),
        "cc": tuple(Address(**one) for one in record["cc"]),
        "reply_to": Address(**record["reply_to"]) if record["reply_to"] else None,
        "categories": tuple(record["categories"]),
        "date": datetime.fromisoformat(record["date"]),
        "send_at": datetime.fromisoformat(send_at) if send_at else None,
    }
    return Message(**(record | parts))


def recipient_record(one: QueuedRecipient) -> Record:
    """A recipient as JSON keeps it."""
    return asdict(one)


def read_recipient(record: Record) -> QueuedRecipient:
    """The recipient that `recipient_record` wrote."""
    to, done = record["recipient"], record["delivery"]
    recipient = Recipient(Address(**to["address"]), to["field"], to["unsubscribe"])
    if done is None:
        return QueuedRecipient(recipient)
    return QueuedRecipient(recipient, Delivery(**(done | {"outcome": Outcome(done["outcome"])})))
