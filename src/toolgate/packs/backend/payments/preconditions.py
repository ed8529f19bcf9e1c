"""What must be so before a subscription is cancelled or a payment goes back, in this order."""

from typing import Any, cast

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.backend.payments.processor import Account
from toolgate.packs.backend.subscriptions import LAST

BASIC = "basic"
DAY = 86_400
NO_DETAILS = "Subscription payment details not found"


def refusal(field: str, message: str) -> InvalidArguments:
    """The error of a precondition that does not hold."""
    return InvalidArguments([Problem(field, "precondition", message)])


def check_confirmed(confirmed: bool, what: str) -> None:
    """Raise unless the caller says that it is meant."""
    if not confirmed:
        raise refusal("confirmed", f"{what} must be confirmed")


def check_cancellable(account: Account, now: int) -> None:
    """Raise unless there is something to cancel, and not too soon."""
    subscription = account.subscription
    if not _is_paid(account) or subscription["status"] not in {"active", "suspended"}:
        raise refusal("uid", "No active paid subscription found")
    if _started_at(account) > now - DAY:
        raise refusal(
            "uid", "Your subscription is still being set up. Please try again after 24-48 hours."
        )
    if is_pending(account):
        raise refusal("uid", "Subscription is already pending cancellation")
    check_payment_known(account)


def check_refundable(account: Account) -> None:
    """Raise unless the subscription is one whose payment may go back."""
    check_paid(account)
    if account.subscription["status"] != "cancelled" and not is_pending(account):
        raise refusal(
            "uid",
            "Subscription must be cancelled or pending cancellation before requesting a refund",
        )
    check_payment_known(account)


def check_paid(account: Account) -> None:
    """Raise unless the user has, or had, a plan that costs money."""
    if not _is_paid(account):
        raise refusal("uid", "No paid subscription found")


def check_payment_known(account: Account) -> None:
    """Raise unless the record says who is paid, and for what."""
    known = {"processor": account.payment.get("processor"), "resourceId": account.resource_id}
    if lacks := [name for name, value in known.items() if not value]:
        where = " and ".join(f"subscription.payment.{name}" for name in lacks)
        raise refusal("uid", f"{NO_DETAILS}: the user's record has no {where}")


def is_pending(account: Account) -> bool:
    """Whether it will end with the period."""
    return account.subscription["cancellation"].get("pending") is True


def _is_paid(account: Account) -> bool:
    if account.product is not None:
        return not account.product.free
    return account.subscription["product"].get("id") not in {None, "", BASIC}


def _started_at(account: Account) -> int:
    return unix_of(account.payment.get("startDate"))


def unix_of(moment: Any) -> int:
    """The unix seconds of a point in time in a record; 0 where there is none."""
    pair = cast("dict[str, Any]", moment) if isinstance(moment, dict) else {}
    seconds = pair.get("timestampUNIX")
    return int(seconds) if isinstance(seconds, int | float) and 0 <= seconds <= LAST else 0
