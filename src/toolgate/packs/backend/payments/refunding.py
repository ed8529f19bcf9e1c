"""Refunds: how much is worked out and stored, then money goes back, then the subscription ends."""

from typing import Any, NamedTuple

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import TimedOut
from toolgate.packs.backend.payments.intents import DONE, REFUSED, Intent
from toolgate.packs.backend.payments.money import major, written
from toolgate.packs.backend.payments.payments import Payments, told, unix_now
from toolgate.packs.backend.payments.preconditions import check_refundable, refusal
from toolgate.packs.backend.payments.processor import (
    Account,
    Payment,
    Processor,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
    Refund,
    Subscription,
)
from toolgate.packs.backend.payments.refund_amounts import amount_to_refund, is_too_old
from toolgate.packs.backend.payments.subscription_records import Record
from toolgate.ports.users import timestamp_record

KIND = "refund"
DOING = "process refund"
Told = dict[str, Any]


async def refund(payments: Payments, tx: Transaction, uid: str, said: Record) -> Told:
    """Give the last payment back and end the subscription; return the refund as it is told."""
    account = await payments.account(uid)
    check_refundable(account)
    processor = payments.processor_of(account)
    try:
        intent, payment, subscription = await _begin(payments, tx, account, processor, said)
    except (ProcessorRefused, ProcessorBusy) as problem:
        raise told(problem, DOING) from problem
    except ProcessorSilent as problem:
        raise told(ProcessorBusy(str(problem)), DOING) from problem
    try:
        done = await give_back(processor, intent, payment)
    except (ProcessorRefused, ProcessorBusy) as problem:
        await payments.drop(tx, intent, problem)
        raise told(problem, DOING) from problem
    except ProcessorSilent as problem:
        raise told(problem, DOING) from problem
    subscription = await _end(processor, intent, subscription, done)
    return await complete(payments, tx, Done(account, intent, payment, done, subscription))


async def _begin(
    payments: Payments, tx: Transaction, account: Account, processor: Processor, said: Record
) -> tuple[Intent, Payment, Subscription]:
    """What will be asked for; where that was begun before and not ended, the same again."""
    subscription = await processor.subscription(account)
    payment = await processor.payment(account)
    if payment is None:
        raise refusal("uid", "No payment was found for this subscription")
    amount = amount_to_refund(payment, subscription, unix_now())
    request = {**said, "payment": payment.id, "amount": amount}
    begun = Intent(
        id=tx.call or "",
        kind=KIND,
        uid=account.uid,
        processor=str(account.payment["processor"]),
        resource_id=account.resource_id,
        request=request,
    )
    intent = await payments.intents.begin(begun)
    if intent is begun:
        # Again: one that was open when we looked may have ended before ours began.
        payment = await processor.payment(account) or payment
        if problem := _problem(payment, amount):
            await payments.intents.give_up(intent, REFUSED, {"refused": problem})
            raise refusal("uid", problem)
    return intent, payment, subscription


def _problem(payment: Payment, amount: int) -> str | None:
    """Why a payment does not go back, if so."""
    if is_too_old(payment, unix_now()):
        return "Payments older than 6 months are not eligible for refunds"
    if payment.refunded >= payment.amount or any(one.key for one in payment.refunds):
        back = written(payment.refunded, payment.currency)
        return f"This payment was refunded already ({back})"
    if amount <= 0:
        return "Nothing is left to refund: the time that was paid for is over"
    return None


async def give_back(processor: Processor, intent: Intent, payment: Payment) -> Refund:
    """Ask for the refund, unless it is there."""
    for one in payment.refunds:
        if one.key == intent.key:  # done by the call that began it, which was never told so
            return one
    return await processor.refund(payment, intent.request["amount"], intent.key)


async def _end(
    processor: Processor, intent: Intent, subscription: Subscription, done: Refund
) -> Subscription:
    """End the subscription at once; the money is back already, whatever becomes of this."""
    if subscription.ended:
        return subscription
    try:
        return await processor.cancel(subscription, at_once=True, key=f"{intent.key}-end")
    except (ProcessorRefused, ProcessorBusy, ProcessorSilent) as problem:
        raise TimedOut(
            f"{written(done.amount, done.currency)} was refunded, but it is not known whether the "
            f"subscription has ended: {problem} Call again to end it; nothing is refunded twice."
        ) from problem


class Done(NamedTuple):
    """A refund that the processor has made, and what it is about."""

    account: Account
    intent: Intent
    payment: Payment
    refund: Refund
    subscription: Subscription


async def complete(payments: Payments, tx: Transaction, done: Done) -> Told:
    """The record says that the subscription has ended, and the order what went back."""
    account, intent, refund = done.account, done.intent, done.refund
    event = {"name": "refund_payment", "id": intent.id}
    await payments.follow(tx, account.uid, done.subscription, intent.processor, event)
    answer = {
        "amount": major(refund.amount, refund.currency),
        "currency": refund.currency,
        "full": refund.amount == done.payment.amount,
    }
    now = timestamp_record()
    said = {name: intent.request.get(name) for name in ("reason", "feedback")}
    part = {"requests": {"refund": {**said, "date": now}}, "refund": {**answer, "date": now}}
    await payments.note_order(tx, account, part)
    await payments.intents.end(tx, intent, DONE, answer)
    return answer
