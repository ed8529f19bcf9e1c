"""Demo users: one of each kind that tools tell apart."""

from datetime import UTC, datetime
from typing import Any

from toolgate.gate.demo_documents import Document, store_demo
from toolgate.gate.offer import Site
from toolgate.packs.backend.marketing.demo import demo_campaigns
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.payments.payments import account_of
from toolgate.packs.backend.publishing.demo import store_demo_post
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.users import USERS, new_record, timestamp_record

JOINED = datetime(2025, 1, 15, 10, 30, tzinfo=UTC)
LONG_AGO, FAR_AWAY = datetime(2025, 6, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)
Record = dict[str, Any]


def _user(uid: str, name: str, **parts: Record) -> Document:
    record = new_record(uid, f"{uid.strip('_')}@example.com", name, JOINED)
    return USERS, uid, record | parts


def _premium(number: int, status: str, expires: datetime, *, cancelling: bool = False) -> Record:
    usual = new_record("")["subscription"]
    payment = {
        "processor": "test",
        "orderId": f"0000-0000-000{number}",
        "resourceId": f"sub-demo-{number}",
        "frequency": "monthly",
        "price": 4.99,
        "startDate": timestamp_record(JOINED),
    }
    return usual | {
        "product": {"id": "premium", "name": "Premium"},
        "status": status,
        "expires": timestamp_record(expires),
        "cancellation": {"pending": cancelling, "date": timestamp_record(expires)}
        if cancelling
        else usual["cancellation"],
        "payment": usual["payment"] | payment,
    }


def _users() -> tuple[Document, ...]:
    active = _premium(1, "active", FAR_AWAY)
    cancelling = _premium(4, "active", FAR_AWAY, cancelling=True)
    admin = new_record("")["roles"] | {"admin": True}
    return (
        _user("_test-admin", "Ada Admin", roles=admin),
        _user("_test-basic", "Alex Basic"),
        _user("_test-premium-active", "Pat Premium", subscription=active),
        _user(
            "_test-premium-expired", "Eli Expired", subscription=_premium(2, "cancelled", LONG_AGO)
        ),
        _user(
            "_test-premium-suspended",
            "Sue Spended",
            subscription=_premium(3, "suspended", FAR_AWAY),
        ),
        _user("_test-premium-cancelling", "Cam Celling", subscription=cancelling),
        _user("_test-referrer", "Rae Ferrer", affiliate={"code": "TESTREF", "referrals": []}),
    )


DEMO = _users()


async def load_demo(world: BackendWorld, site: Site) -> int:
    """Store the demo records that are not there yet; return how many were stored.

    The ledger has a payment of today for each who pays, so that there is something to refund.
    """
    every = (*DEMO, *demo_campaigns(datetime.now(UTC)))
    stored = await store_demo(BACKEND, site, every)
    for _, uid, record in DEMO:
        account = account_of(uid, record, world.products)
        if account.resource_id:
            await world.payments.ledger.take_over(account, int(datetime.now(UTC).timestamp()))
    if stored:
        await store_demo_post(world.posts)
    return stored
