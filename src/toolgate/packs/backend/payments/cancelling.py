"""Cancelling: the intent is stored, then the processor is asked, then the record follows."""

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.payments.intents import DONE, Intent
from toolgate.packs.backend.payments.payments import Payments, told, unix_now, updated
from toolgate.packs.backend.payments.preconditions import check_cancellable
from toolgate.packs.backend.payments.processor import (
    Account,
    Processor,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
    Subscription,
)
from toolgate.packs.backend.payments.subscription_records import Record, ended_record
from toolgate.ports.documents import Merge
from toolgate.ports.users import USERS, timestamp_record

KIND = "cancel"
DOING = "cancel subscription"


async def cancel(payments: Payments, tx: Transaction, uid: str, said: Record) -> None:
    """Cancel a user's subscription; what is outside comes before the transaction's first step."""
    account = await payments.account(uid)
    check_cancellable(account, unix_now())
    processor = payments.processor_of(account)
    intent = await payments.intents.begin(
        Intent(
            id=tx.call or "",
            kind=KIND,
            uid=uid,
            processor=str(account.payment["processor"]),
            resource_id=account.resource_id,
            request=said,
        )
    )
    try:
        subscription = await _cancel_at(processor, account, intent)
    except (ProcessorRefused, ProcessorBusy) as problem:
        await payments.drop(tx, intent, problem)
        if isinstance(problem, ProcessorBusy) or account.subscription["status"] != "suspended":
            raise told(problem, DOING) from problem
        await _end_without(payments, tx, account, intent)
    except ProcessorSilent as problem:
        raise told(problem, DOING) from problem
    else:
        await complete(payments, tx, account, intent, subscription)


async def _cancel_at(processor: Processor, account: Account, intent: Intent) -> Subscription:
    """Ask the processor, unless it has done so already: a trial ends at once, the rest is paid."""
    subscription = await processor.subscription(account)
    if is_cancelled(subscription):
        return subscription
    return await processor.cancel(subscription, at_once=subscription.trialing, key=intent.key)


def is_cancelled(subscription: Subscription) -> bool:
    """Whether it is over, or will be with its period."""
    return subscription.ended or subscription.cancel_at is not None


async def complete(
    payments: Payments,
    tx: Transaction,
    account: Account,
    intent: Intent,
    subscription: Subscription,
) -> None:
    """The record says what the processor has done, and the order why."""
    event = {"name": "cancel_subscription", "id": intent.id}
    await payments.follow(tx, account.uid, subscription, intent.processor, event)
    await _note_reason(payments, tx, account, intent)
    await payments.intents.end(tx, intent, DONE, {"success": True})


async def _end_without(
    payments: Payments, tx: Transaction, account: Account, intent: Intent
) -> None:
    """A suspended subscription that its processor will not cancel is over for us."""
    event = {"name": "cancel_subscription", "id": intent.id}
    record = ended_record(event, payments.products.default)
    await payments.documents.write(tx, Merge(USERS, account.uid, updated(record)))
    await _note_reason(payments, tx, account, intent)


async def _note_reason(
    payments: Payments, tx: Transaction, account: Account, intent: Intent
) -> None:
    said = {name: intent.request.get(name) for name in ("reason", "feedback")}
    request = {**said, "date": timestamp_record()}
    await payments.note_order(tx, account, {"requests": {"cancellation": request}})
