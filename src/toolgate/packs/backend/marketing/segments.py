"""Segments: which users a campaign is for, worked out from their records when it is sent."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from toolgate.packs.backend.mail.addresses import normalised
from toolgate.packs.backend.marketing.consent import emails_of
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    DocumentReader,
    Fields,
    Order,
    Query,
    StoredDocument,
)
from toolgate.ports.users import USERS

PAGE = 500
FREE = "basic"
"""The product of users who pay nothing."""
Test = Callable[[Fields, datetime], bool]


def _map(record: Any, *names: str) -> dict[str, Any]:
    for name in names:
        record = cast("dict[str, Any]", record).get(name) if isinstance(record, dict) else None
    return cast("dict[str, Any]", record) if isinstance(record, dict) else {}


def _moment(pair: dict[str, Any]) -> datetime | None:
    """A point in time as records write it; None for the epoch, which stands for never."""
    seconds = pair.get("timestampUNIX")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _product(record: Fields) -> str:
    return str(_map(record, "subscription", "product").get("id") or FREE)


def _status(record: Fields) -> str:
    return str(_map(record, "subscription").get("status") or "active")


def _expires(record: Fields) -> datetime | None:
    return _moment(_map(record, "subscription", "expires"))


def _has_ended(record: Fields, now: datetime) -> bool:
    expires = _expires(record)
    return expires is not None and expires <= now


def _has_plan(record: Fields, now: datetime) -> bool:
    return _product(record) != FREE and _status(record) == "active" and not _has_ended(record, now)


def _trial_end(record: Fields) -> datetime | None:
    return _moment(_map(record, "subscription", "trial", "expires"))


def _is_trialing(record: Fields, now: datetime) -> bool:
    until = _trial_end(record)
    return until is not None and until > now and _has_plan(record, now)


def _is_paid(record: Fields, now: datetime) -> bool:
    return _has_plan(record, now) and not _is_trialing(record, now)


def _claimed_trial(record: Fields) -> bool:
    return _map(record, "subscription", "trial").get("claimed") is True


def _ever_paid(record: Fields, now: datetime) -> bool:
    """Whether money came. An order begins with its trial: one that ended with it brought none."""
    payment = _map(record, "subscription", "payment")
    price = payment.get("price")
    is_free = not isinstance(price, int | float) or isinstance(price, bool) or not price > 0
    is_ordered = _moment(_map(payment, "startDate")) is not None or bool(payment.get("orderId"))
    if is_free or not is_ordered:
        return False
    trial, expires = _trial_end(record), _expires(record)
    if not _claimed_trial(record):
        return True
    if trial is None or expires is None:
        return _is_paid(record, now)
    return trial <= now and expires > trial


def _is_free(record: Fields, now: datetime) -> bool:
    return not _has_plan(record, now) and _status(record) != "suspended"


def _is_cancelling(record: Fields, now: datetime) -> bool:
    pending = _map(record, "subscription", "cancellation").get("pending")
    return pending is True and _has_plan(record, now)


def _is_over(record: Fields, now: datetime) -> bool:
    """Whether nothing runs any more; what is suspended may go on until its period ends."""
    if _status(record) == "suspended":
        return _has_ended(record, now)
    return not _has_plan(record, now)


def _joined_within(days: int) -> Test:
    def test(record: Fields, now: datetime) -> bool:
        joined = _moment(_map(record, "metadata", "created"))
        return joined is not None and now - timedelta(days=days) <= joined <= now

    return test


def _active_within(days: int) -> Test:
    def test(record: Fields, now: datetime) -> bool:
        seen = _moment(_map(record, "metadata", "updated"))
        return seen is not None and seen >= now - timedelta(days=days)

    return test


SEGMENTS: dict[str, Test] = {
    "subscription_free": _is_free,
    "subscription_paid": _is_paid,
    "subscription_trialing": _is_trialing,
    "subscription_cancelling": _is_cancelling,
    "subscription_suspended": lambda record, _: _status(record) == "suspended",
    "subscription_cancelled": lambda record, _: _status(record) == "cancelled",
    "subscription_churned_paid": lambda record, now: (
        _is_over(record, now) and _ever_paid(record, now)
    ),
    "subscription_churned_trial": lambda record, now: (
        _is_over(record, now) and _claimed_trial(record) and not _ever_paid(record, now)
    ),
    "subscription_ever_paid": _ever_paid,
    "subscription_never_paid": lambda record, now: not _ever_paid(record, now),
    "lifecycle_7d": _joined_within(7),
    "lifecycle_30d": _joined_within(30),
    "lifecycle_90d": _joined_within(90),
    "lifecycle_6m": _joined_within(182),
    "lifecycle_1y": _joined_within(365),
    "engagement_active_7d": _active_within(7),
    "engagement_active_30d": _active_within(30),
    "engagement_active_90d": _active_within(90),
    "engagement_inactive_90d": lambda record, now: not _active_within(90)(record, now),
}
"""What each asks of a user's record."""


def is_wanted(
    record: Fields, now: datetime, segments: Iterable[str], excluded: Iterable[str], *, all: bool
) -> bool:
    """Whether a campaign is for this user; who is in an excluded segment is out."""
    if any(SEGMENTS[name](record, now) for name in excluded):
        return False
    return all or any(SEGMENTS[name](record, now) for name in segments)


async def users_after(documents: DocumentReader, uid: str | None) -> Sequence[StoredDocument]:
    """The next page of users, ordered by their ids."""
    start = Cursor((uid,), inclusive=False) if uid is not None else None
    query = Query(USERS, order=[Order(DOCUMENT_ID)], limit=PAGE, start=start)
    return await documents.query(query)


async def addresses_in(
    documents: DocumentReader, now: datetime, segments: Iterable[str]
) -> set[str]:
    """The addresses of all users in one of these segments, in whatever spelling their records."""
    segments, found, after = list(segments), set[str](), None
    while users := await users_after(documents, after) if segments else ():
        for one in users:
            if any(SEGMENTS[name](one.fields, now) for name in segments):
                found |= {normalised(email) for email in emails_of(one.fields)}
        after = users[-1].id
    return found
