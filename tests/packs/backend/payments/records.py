"""Users with subscriptions, and short ways to look at them."""

import time
from datetime import UTC, datetime
from typing import Any

from toolgate.ports.documents import Merge, Set
from toolgate.ports.users import USERS, new_record, timestamp_record
from toolgate.testing import Kit

DAY = 86_400
Record = dict[str, Any]


def moment(days: float = 0.0) -> Record:
    """So many days from now."""
    return timestamp_record(datetime.fromtimestamp(int(time.time() + days * DAY), UTC))


def subscription(*, resource: str | None = "sub_1", days: float = -10, **parts: Any) -> Record:
    """A premium subscription that began some days ago; parts over it, maps into maps."""
    usual = new_record("")["subscription"]
    payment = {
        "processor": "test",
        "orderId": "ABCD-EFGH-0001",
        "resourceId": resource,
        "frequency": "monthly",
        "price": 4.99,
        "startDate": moment(days),
    }
    record = {
        **usual,
        "product": {"id": "premium", "name": "Premium"},
        "expires": moment(20),
        "payment": usual["payment"] | payment,
    }
    for name, value in parts.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    return record


async def keep(kit: Kit, uid: str, subscription: Record) -> None:
    """Store a user's record."""
    record = {**new_record(uid, f"{uid}@example.com"), "subscription": subscription}
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Set(USERS, uid, record))


async def merge(kit: Kit, uid: str, subscription: Record) -> None:
    """Change a part of a user's subscription."""
    async with kit.app.gate.database.transaction() as tx:
        merged = Merge(USERS, uid, {"subscription": subscription})
        await kit.app.documents.of("backend").write(tx, merged)


async def stored(kit: Kit, uid: str) -> Record:
    """A user's subscription as it is stored."""
    record = await kit.app.documents.of("backend").get(USERS, uid)
    assert record is not None
    return record["subscription"]


async def order(kit: Kit, id: str = "ABCD-EFGH-0001") -> Record:
    """An order as it is stored; nothing where there is none."""
    return await kit.app.documents.of("backend").get("payments-orders", id) or {}
