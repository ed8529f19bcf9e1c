"""Every night: what was begun and never ended, and records that differ from the processor."""

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.payments import cancelling, refunding
from toolgate.packs.backend.payments.intents import NOT_DONE, Forgotten, Intent
from toolgate.packs.backend.payments.payments import Payments, account_of, unix_now
from toolgate.packs.backend.payments.processor import (
    Account,
    Processor,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
)
from toolgate.ports.documents import DOCUMENT_ID, Cursor, Filter, Operator, Order, Query
from toolgate.ports.users import USERS

logger = logging.getLogger(__name__)

SURELY_OVER = timedelta(minutes=5)
"""A call that began an intent longer ago than this does not go on any more."""
BATCH = 100
FORGOTTEN_AT_ONCE = 500
PROCESSOR = Filter("subscription.payment.processor", Operator.EQUAL, "stripe")
EVENT = {"name": "reconciliation", "id": None}


async def settle_intents(payments: Payments, older_than: timedelta = SURELY_OVER) -> dict[str, int]:
    """Ask processors what became of intents that nobody ended; complete the records."""
    before = timestamp_before(older_than)
    counted = {"completed": 0, "not done": 0, "unknown": 0}
    after = ""
    while found := await payments.intents.open_since(before, after, BATCH):
        for intent in found:
            counted[await _outcome(payments, intent)] += 1
        after = found[-1].id
    return counted


async def _outcome(payments: Payments, intent: Intent) -> str:
    try:
        return "completed" if await _settle(payments, intent) else "not done"
    except (ProcessorBusy, ProcessorSilent) as problem:
        logger.warning("%s %s is not settled: %s", intent.kind, intent.id, problem)
        return "unknown"


def utc_now() -> datetime:
    """Now."""
    return datetime.now(UTC)


def timestamp_before(age: timedelta) -> str:
    """The time so long ago, as rows have it."""
    moment = utc_now() - age
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


async def _settle(payments: Payments, intent: Intent) -> bool:
    """Whether the processor had done it; what it has not done is not done now."""
    processor = payments.processors.get(intent.processor)
    record = await payments.documents.get(USERS, intent.uid)
    if processor is None:
        raise ProcessorBusy(f"Processor {intent.processor} is not configured.")
    account = account_of(intent.uid, record or {}, payments.products)
    account = Account(intent.uid, _with_resource(account, intent), account.product)
    try:
        if intent.kind == cancelling.KIND:
            done = await _settle_cancel(payments, processor, account, intent)
        else:
            done = await _settle_refund(payments, processor, account, intent)
    except ProcessorRefused as problem:
        await payments.intents.give_up(intent, NOT_DONE, {"refused": str(problem)})
        return False
    if not done:
        await payments.intents.give_up(intent, NOT_DONE, {})
    return done


def _with_resource(account: Account, intent: Intent) -> dict[str, Any]:
    """The user may have another subscription by now: the intent is about its own."""
    payment = {**account.payment, "resourceId": intent.resource_id}
    return {**account.subscription, "payment": payment}


async def _settle_cancel(
    payments: Payments, processor: Processor, account: Account, intent: Intent
) -> bool:
    subscription = await processor.subscription(account)
    if not cancelling.is_cancelled(subscription):
        return False
    async with payments.database.transaction() as tx:
        await cancelling.complete(payments, tx, account, intent, subscription)
    return True


async def _settle_refund(
    payments: Payments, processor: Processor, account: Account, intent: Intent
) -> bool:
    payment = await processor.payment(account)
    made = [one for one in payment.refunds if one.key == intent.key] if payment else []
    if payment is None or not made:
        return False
    subscription = await processor.subscription(account)
    if not subscription.ended:
        subscription = await processor.cancel(subscription, at_once=True, key=f"{intent.key}-end")
    async with payments.database.transaction() as tx:
        done = refunding.Done(account, intent, payment, made[0], subscription)
        await refunding.complete(payments, tx, done)
    return True


async def book_due(payments: Payments) -> int:
    """Let the ledger renew and end what is due, and the records follow; how many."""
    booked = 0
    while uids := await payments.ledger.book_due(unix_now()):
        for uid in uids:
            record = await payments.documents.get(USERS, uid)
            account = account_of(uid, record or {}, payments.products)
            name = str(account.payment.get("processor"))
            if payments.processors.get(name) is not payments.ledger or not account.resource_id:
                continue
            try:
                subscription = await payments.ledger.subscription(account)
            except ProcessorRefused:
                continue
            async with payments.database.transaction() as tx:
                await payments.follow(tx, uid, subscription, name, {**EVENT, "id": timestamp()})
        booked += len(uids)
    return booked


async def repair_some(payments: Payments, after: str | None) -> tuple[str | None, int, int]:
    """Compare a batch of records with Stripe: the last user looked at, how many, how many differed.

    No user is returned once all were looked at.
    """
    start = Cursor((after,), inclusive=False) if after is not None else None
    wanted = Query(USERS, (PROCESSOR,), (Order(DOCUMENT_ID),), limit=BATCH, start=start)
    found = await payments.documents.query(wanted)
    repaired = 0
    for one in found:
        account = account_of(one.id, one.fields, payments.products)
        if account.resource_id and await _repair(payments, account):
            repaired += 1
    return (found[-1].id if len(found) == BATCH else None), len(found), repaired


async def _repair(payments: Payments, account: Account) -> bool:
    processor = payments.processors.get("stripe")
    if processor is None:
        return False
    try:
        subscription = await processor.subscription(account)
    except ProcessorRefused as problem:
        logger.warning("the subscription of user %s is not at Stripe: %s", account.uid, problem)
        return False
    async with payments.database.transaction() as tx:
        event = {**EVENT, "id": str(time.time_ns() // 1000)}
        return await payments.follow(tx, account.uid, subscription, "stripe", event)


async def forget_old(payments: Payments) -> Forgotten:
    """Forget events and ended intents that are kept long enough; how many."""
    before = timestamp_before(timedelta(days=payments.keep_days))
    total = Forgotten(0, 0)
    while any(some := await payments.intents.forget(before, FORGOTTEN_AT_ONCE)):
        total = Forgotten(total.events + some.events, total.intents + some.intents)
    return total
