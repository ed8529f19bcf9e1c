"""What each document counts for, and the numbers that come of it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolgate.ports.documents import Fields
from toolgate.ports.filters import field_at
from toolgate.ports.users import USERS

NOTIFICATIONS = "notifications"
"""The tokens that push notifications go to."""
COLLECTIONS = (USERS, NOTIFICATIONS)
LAST_SECOND = 2**40 - 1
"""A subscription that ends later ends then."""
MAX_NAME = 100
CANCELLED = "cancelled"
EXEMPT_ROLES = ("admin", "vip")


class Counted(NamedTuple):
    """Something that is counted: every document of a collection, or a subscription."""

    collection: str
    plan: str = ""
    """Of a subscription: its product."""
    frequency: str = ""
    exempt: bool = False
    """Whether it is an admin's or a VIP's, who need not pay."""


ENDS = ("subscription", "expires", "timestampUNIX")
KIND = (
    ("subscription", "status"),
    ("subscription", "product", "id"),
    ("subscription", "payment", "frequency"),
    *(("roles", role) for role in EXEMPT_ROLES),
)
"""With `ENDS`, the fields of a user that numbers depend on; nothing else need be read."""

Numbers = Counter[tuple[Counted, int]]
"""How many of each; of subscriptions, by the second in which they end, else by 0."""


def count(numbers: Numbers, path: str, fields: Fields | None, by: int) -> None:
    """Add what a document counts for, or take it away; no document counts for nothing."""
    collection = path.rpartition("/")[0]
    if fields is None or collection not in COLLECTIONS:
        return
    numbers[Counted(collection), 0] += by
    if collection == USERS and (subscription := _subscription(fields)):
        numbers[subscription] += by


def count_changes(numbers: Numbers, changes: Iterable[Any]) -> None:
    """Add what changes of documents make of the numbers."""
    for one in changes:
        count(numbers, one.path, one.before, -1)
        count(numbers, one.path, one.after, 1)


def _subscription(user: Fields) -> tuple[Counted, int] | None:
    """A user's subscription and when it ends; None for one that has been cancelled, or for none.

    Whoever cancels keeps the plan to the end of the period, and counts until then.
    """
    ends = second_of(field_at(user, ENDS))
    kind = kind_of([field_at(user, path) for path in KIND]) if ends else None
    return (kind, ends) if kind else None


def kind_of(values: Sequence[Any]) -> Counted | None:
    """What a subscription counts as, by the values of `KIND`; None for nothing."""
    status, plan, frequency, *roles = values
    if status == CANCELLED:
        return None
    exempt = any(role is True for role in roles)
    return Counted(USERS, _name(plan, "basic"), _name(frequency, "unknown"), exempt)


def second_of(value: Any) -> int:
    """When a subscription ends, by the value of `ENDS`; 0 where that is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(int(value), 0), LAST_SECOND)


def _name(value: Any, otherwise: str) -> str:
    return value[:MAX_NAME] if isinstance(value, str) and value else otherwise


def totals(numbers: Numbers, now: int) -> Counter[Counted]:
    """How many there are now: a subscription counts up to the second in which it ends."""
    result: Counter[Counted] = Counter()
    for (what, ends), number in numbers.items():
        if not what.plan or ends >= now:
            result[what] += number
    return result


def told(counts: Mapping[Counted, int]) -> dict[str, Any]:
    """The numbers as they are answered and stored."""
    overall = {"total": 0, "exempt": 0}
    plans: dict[str, dict[str, int]] = {}
    for what, number in sorted(counts.items()):
        if not what.plan or not number:
            continue
        plan = plans.setdefault(what.plan, {"total": 0, "monthly": 0, "annually": 0, "exempt": 0})
        kind = "exempt" if what.exempt else "total"
        overall[kind] += number
        plan[kind] += number
        if not what.exempt:
            plan[what.frequency] = plan.get(what.frequency, 0) + number
    return {
        "users": {"total": counts.get(Counted(USERS), 0)},
        "notifications": {"total": counts.get(Counted(NOTIFICATIONS), 0)},
        "subscriptions": {"totals": overall, "plans": plans},
    }
