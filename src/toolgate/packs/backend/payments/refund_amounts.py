"""How much of a payment goes back."""

from toolgate.packs.backend.payments.money import payable
from toolgate.packs.backend.payments.processor import Payment, Subscription

DAY = 86_400
FULL_DAYS = 7
"""A payment as young as this goes back as a whole, an older one for the time that is left of it."""
MOST_DAYS = 180


def is_too_old(payment: Payment, now: int) -> bool:
    """Whether it is too long ago."""
    return now - payment.paid_at > MOST_DAYS * DAY


def amount_to_refund(payment: Payment, subscription: Subscription, now: int) -> int:
    """In minor units, and never more than is left of the payment; 0 where nothing is."""
    left = payment.amount - payment.refunded
    if now - payment.paid_at <= FULL_DAYS * DAY:
        return max(0, left)
    whole = subscription.period_end - subscription.period_start
    unused = max(0, subscription.period_end - now)
    if whole <= 0 or subscription.period_end <= payment.paid_at:
        return 0
    share = payable((payment.amount * unused + whole // 2) // whole, payment.currency)
    return max(0, min(share, left))
