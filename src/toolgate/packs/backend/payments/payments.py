"""Payments of users: whose, at which processor, and the records that follow it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import GateError, NotFound, TimedOut, Unavailable
from toolgate.packs.backend.payments.intents import REFUSED, Intent, Intents
from toolgate.packs.backend.payments.preconditions import refusal
from toolgate.packs.backend.payments.processor import (
    Account,
    EventSource,
    Ledger,
    Processor,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
    Subscription,
)
from toolgate.packs.backend.payments.return_urls import ReturnUrls
from toolgate.packs.backend.payments.subscription_records import (
    Record,
    differs,
    is_about,
    record_of,
)
from toolgate.packs.backend.products import Products
from toolgate.ports.documents import (
    DocumentStore,
    DocumentTransaction,
    Filter,
    Merge,
    Operator,
    Query,
)
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS, complete_record, timestamp_record

ORDERS = "payments-orders"
RESOURCE = "subscription.payment.resourceId"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payments:
    """What the tools, the pages and the nightly work do about payments."""

    database: Database
    documents: DocumentStore
    intents: Intents
    processors: Mapping[str, Processor]
    """By the name that a user's record gives one."""
    products: Products
    return_urls: ReturnUrls
    ledger: Ledger
    events: EventSource | None = None
    """Whoever sends events, and signs them with the secret."""
    keep_days: int = 90
    """How long events and ended intents are kept."""
    webhook_secret: str | None = field(default=None, repr=False)

    async def account(self, uid: str) -> Account:
        """A user who has a record."""
        record = None if broken_id_rule(uid) else await self.documents.get(USERS, uid)
        if record is None:
            raise NotFound("User not found")
        return account_of(uid, record, self.products)

    def processor_of(self, account: Account) -> Processor:
        """Whoever takes the money of a user."""
        name = str(account.payment.get("processor"))
        processor = self.processors.get(name)
        if processor is None:
            hint = ". Set payments.url to stripe:" if name == "stripe" else ""
            raise refusal("uid", f"Unknown processor: {name[:50]}{hint}")
        return processor

    async def user_of(self, subscription: Subscription) -> str | None:
        """Whose subscription it is: the user it was made for, or whose record names it."""
        if subscription.uid:
            return None if broken_id_rule(subscription.uid) else subscription.uid
        wanted = Filter(RESOURCE, Operator.EQUAL, subscription.id)
        found = await self.documents.query(Query(USERS, (wanted,), limit=1))
        return found[0].id if found else None

    async def follow(
        self, tx: Transaction, uid: str, subscription: Subscription, processor: str, event: Record
    ) -> bool:
        """Write what the processor tells into the user's record; False where nothing changes."""
        if not await self.intents.is_newest(tx, processor, subscription.id, subscription.read_at):
            return False

        async def work(documents: DocumentTransaction) -> bool:
            record = await documents.get(USERS, uid)
            if record is None:
                return False
            stored = account_of(uid, record, self.products).subscription
            told = record_of(subscription, processor, event, self.products)
            if not is_about(subscription, stored) or not differs(told, stored):
                return False
            documents.write(Merge(USERS, uid, updated(told)))
            return True

        return await self.documents.transact(tx, work)

    async def drop(self, tx: Transaction, intent: Intent, problem: Exception) -> None:
        """End an intent that came to nothing; what another call began and nobody knows stays."""
        if isinstance(problem, ProcessorRefused) or intent.id == tx.call:
            await self.intents.give_up(intent, REFUSED, {"refused": str(problem)})

    async def note_order(self, tx: Transaction, account: Account, part: Record) -> None:
        """Write something down on the order that the subscription came from, if one is known."""
        if order := account.order_id:
            await self.documents.write(tx, Merge(ORDERS, str(order), part))


def account_of(uid: str, record: Mapping[str, Any], products: Products) -> Account:
    """A user's account, with defaults where the record has nothing, or nothing usable."""
    usual: Record = complete_record(uid, None)["subscription"]
    told = complete_record(uid, dict(record))["subscription"]
    if isinstance(told, dict):
        usual = _maps_of(cast("Record", told), usual)
    return Account(uid, usual, products.find(usual["product"].get("id")))


def _maps_of(told: Record, usual: Record) -> Record:
    """The same, with the usual map in the place of what should be one and is none."""
    return {
        name: usual[name]
        if isinstance(usual.get(name), dict) and not isinstance(value, dict)
        else value
        for name, value in told.items()
    }


def updated(subscription: Record) -> Record:
    """The part of a user's record that changes with the subscription."""
    return {"subscription": subscription, "metadata": {"updated": timestamp_record()}}


def told(problem: Exception, doing: str) -> GateError:
    """The error to tell where a processor fails; `doing` says at what."""
    match problem:
        case ProcessorRefused():
            return refusal("uid", f"Failed to {doing}: {problem}")
        case ProcessorBusy():
            return Unavailable(f"{problem} Nothing was done. Try again later.")
        case ProcessorSilent():
            return TimedOut(
                f"{problem} It is not known whether it was done: this is looked into every night. "
                "Call again to find out now; nothing is done twice."
            )
        case _:
            raise problem


def unix_now() -> int:
    """Now, in unix seconds."""
    return int(time.time())
