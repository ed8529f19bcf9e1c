"""Sending: the intent is stored before a mail is handed over, and what became of it after.

Two systems cannot commit together. A server that is killed between the mail server's `250` and our
commit leaves an intent: the mail may have been taken, and is never sent again by itself. It is told
as unknown until an operator says what became of it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict, GateError
from toolgate.packs.backend.mail.port import Delivery, Mailer, MailUnavailable, Outcome
from toolgate.packs.backend.mail.queue import (
    MailQueue,
    QueuedMail,
    Status,
    message_record,
    recipient_record,
)
from toolgate.ports.documents import Delete, DocumentStore, Set
from toolgate.ports.users import timestamp_record

EMAILS, EMAILS_QUEUE = "emails", "emails-queue"
LEASE = timedelta(minutes=10)
"""Longer than a recipient can take; after it nobody is sending this mail any more."""
MAX_ATTEMPTS = 8
BACKOFF = timedelta(minutes=1)
"""Before the second attempt; twice as long before each further one."""
BATCH = 50
LOST = "the server was stopped while it handed this mail over: it may have been taken"
NO_CONSENT = "not sent: consent was taken back before its time came"
Clock = Callable[[], datetime]
Unwilling = Callable[[Sequence[str], str], Awaitable[set[str]]]
"""The addresses, normalised, that do not want mail of an unsubscribe group."""


def utc_now() -> datetime:
    """Now."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Sending:
    """Hands mails over, and keeps the record of it."""

    mailer: Mailer
    queue: MailQueue
    documents: DocumentStore
    database: Database
    clock: Clock = utc_now
    lease: timedelta = LEASE
    unwilling: Unwilling | None = None
    """Asked again before a mail that was held is handed over."""

    async def hold(self, tx: Transaction, mail: QueuedMail) -> None:
        """Keep a mail until it is due; it is there once the transaction commits."""
        await self.queue.add(tx, mail, digest=None, lease=None)
        record = self._record(mail, Status.QUEUED.value)
        record["sendAt"] = timestamp_record(mail.due_at)
        await self.documents.write(tx, Set(EMAILS_QUEUE, mail.id, record))

    async def send_now(self, mail: QueuedMail) -> QueuedMail:
        """Hand a mail over; `complete` stores what became of it.

        Raises `Conflict` where the same mail is on its way, or may have been taken.
        """
        if not self.mailer.delivers:
            return await self._hand_over(mail)
        mail = replace(mail, status=Status.SENDING, attempts=1)
        lease = self.clock() + self.lease
        async with self.database.transaction() as tx:
            other = await self.queue.add(tx, mail, digest=digest_of(mail), lease=lease)
        if other is not None:
            raise Conflict(
                f"The same mail was handed over before, and it is not known whether it was taken "
                f"(emails/{other}). It is not sent twice. See `operator.email.list`, and settle it "
                "with `operator.email.resolve`."
            )
        return await self._hand_over(mail)

    async def complete(self, tx: Transaction, mail: QueuedMail) -> None:
        """Store what became of a mail: its record, and whether it stays in the queue."""
        status = self.status_of(mail)
        stays = {"unknown": Status.UNKNOWN, "waiting": Status.WAITING}.get(status)
        if stays is Status.WAITING:
            waiting = replace(mail, status=stays, recipients=_anew(mail))
            if await self.queue.add(tx, waiting, digest=None, lease=None):
                await self.queue.settle(tx, waiting)
        elif stays is Status.UNKNOWN:
            await self.queue.settle(tx, replace(mail, status=stays))
        else:
            await self.queue.remove(tx, mail.id)
        await self.documents.write(
            tx, Set(EMAILS, mail.id, self._record(mail, status)), Delete(EMAILS_QUEUE, mail.id)
        )

    async def has_work(self) -> bool:
        """Whether a mail is due, or was left behind."""
        now = self.clock()
        return bool(await self.queue.due(now, 1) or await self.queue.lost(now, 1))

    async def deliver_due(self) -> dict[str, int]:
        """Send what is due, once; and say of what was left behind that it is unknown."""
        counts = {"sent": 0, "retried": 0, "failed": 0, "unknown": await self.settle_lost()}
        while due := await self.queue.due(self.clock(), BATCH):
            for mail_id in due:
                if status := await self.deliver(mail_id):
                    counts[status] = counts.get(status, 0) + 1
        return counts

    async def deliver(self, mail_id: str) -> str | None:
        """Send one held mail; what became of it, or None where another one sends it."""
        now = self.clock()
        mail = await self.queue.claim(mail_id, now, now + self.lease)
        if mail is None:
            return None
        try:
            mail = await self._without_unwilling(mail)
            if mail.open_recipients():
                mail = await self._hand_over(mail)
        except (MailUnavailable, GateError) as problem:  # nothing was handed over
            mail = mail.with_deliveries(
                [
                    Delivery(one.address.email, Outcome.REFUSED, str(problem), temporary=True)
                    for one in mail.open_recipients()
                ]
            )
        async with self.database.transaction() as tx:
            if self._tries_again(mail):
                later = self.clock() + BACKOFF * 2 ** (mail.attempts - 1)
                await self.queue.settle(tx, replace(mail, status=Status.QUEUED, due_at=later))
                return "retried"
            await self.complete(tx, mail)
        return self.status_of(mail)

    async def _without_unwilling(self, mail: QueuedMail) -> QueuedMail:
        """The mail, with those as skipped who took consent back while it was held."""
        group = mail.message.group
        if self.unwilling is None or group is None:
            return mail
        open_to = [one.address for one in mail.open_recipients()]
        gone = await self.unwilling([one.key for one in open_to], str(group))
        return mail.with_deliveries(
            [Delivery(one.email, Outcome.SKIPPED, NO_CONSENT) for one in open_to if one.key in gone]
        )

    async def settle_lost(self) -> int:
        """Say of mails whose server was killed that nobody knows; how many there were."""
        count = 0
        while lost := await self.queue.lost(self.clock(), BATCH):
            for mail in lost:
                unknown = [
                    Delivery(one.address.email, Outcome.UNKNOWN, LOST)
                    for one in mail.open_recipients()
                ]
                async with self.database.transaction() as tx:
                    await self.complete(tx, mail.with_deliveries(unknown))
            count += len(lost)
        return count

    async def resolve(self, tx: Transaction, mail: QueuedMail, *, taken: bool) -> None:
        """An operator found out what became of a mail that was unknown."""
        words = f"an operator found out that it was {'' if taken else 'not '}taken"
        outcome = Outcome.ACCEPTED if taken else Outcome.REFUSED
        known = [
            Delivery(one.email, outcome, words)
            for one in mail.deliveries()
            if one.outcome is Outcome.UNKNOWN
        ]
        await self.complete(tx, mail.with_deliveries(known))

    def status_of(self, mail: QueuedMail) -> str:
        """What a record says of a mail."""
        outcomes = {one.outcome for one in mail.deliveries()}
        if Outcome.UNKNOWN in outcomes:
            return "unknown"
        if outcomes == {Outcome.SKIPPED}:
            return "skipped"
        if not self.mailer.delivers and mail.status is not Status.UNKNOWN:
            return "waiting"
        return "sent" if Outcome.ACCEPTED in outcomes else "failed"

    def response(self, mail: QueuedMail) -> dict[str, Any]:
        """What the provider said, for each recipient."""
        return {
            "messageId": mail.id,
            "provider": self.mailer.provider,
            "delivery": self.status_of(mail),
            "recipients": [
                {"email": one.email, "outcome": one.outcome.value, "words": one.words}
                for one in mail.deliveries()
            ],
        }

    async def _hand_over(self, mail: QueuedMail) -> QueuedMail:
        progress = _Progress(self, mail)
        several = len(mail.recipients) > 1 and self.mailer.delivers
        done = await self.mailer.send(
            mail.message, mail.open_recipients(), progress.note if several else None
        )
        return mail.with_deliveries(done)

    def _tries_again(self, mail: QueuedMail) -> bool:
        """Whether some recipients surely did not get it and may do so later."""
        return bool(mail.open_recipients()) and mail.attempts < MAX_ATTEMPTS

    def _record(self, mail: QueuedMail, status: str) -> dict[str, Any]:
        now = timestamp_record(self.clock())
        return {
            "messageId": mail.id,
            "status": status,
            "options": mail.options,
            "response": self.response(mail) if mail.deliveries() else None,
            "metadata": {"created": timestamp_record(mail.message.date), "updated": now},
        }


@dataclass(slots=True)
class _Progress:
    """Stores what became of each recipient, so that a crash leaves only one unknown."""

    sending: Sending
    mail: QueuedMail

    async def note(self, done: Delivery) -> None:
        self.mail = self.mail.with_deliveries([done])
        await self.sending.queue.note(self.mail, self.sending.clock() + self.sending.lease)


def _anew(mail: QueuedMail) -> tuple[Any, ...]:
    """The recipients of a mail that nobody has got yet."""
    return tuple(replace(one, delivery=None) for one in mail.recipients)


def digest_of(mail: QueuedMail) -> str:
    """The same for mails that say the same to the same people."""
    message = message_record(mail.message)
    # Nor where this server is reached, which may change with its port.
    for name in ("id", "date", "headers", "unsubscribe_page"):
        del message[name]
    people = sorted(
        recipient_record(one)["recipient"]["address"]["email"] for one in mail.recipients
    )
    return hashlib.sha256(orjson.dumps([message, people], option=orjson.OPT_SORT_KEYS)).hexdigest()
