"""`daily/expire-paypal-cancellations`: cancelled subscriptions whose paid period is over.

PayPal does not tell when that is so: it stops charging, and says nothing at the end of the period.
"""

from typing import TYPE_CHECKING, Any, cast

from toolgate.packs.backend.paging import pages_of
from toolgate.packs.backend.payments.payments import account_of, unix_now, updated
from toolgate.packs.backend.payments.subscription_records import ended_record
from toolgate.ports.documents import DocumentTransaction, Filter, Merge, Operator
from toolgate.ports.users import NEVER, USERS
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

PAYPAL = Filter("subscription.payment.processor", Operator.EQUAL, "paypal")
PENDING = Filter("subscription.cancellation.pending", Operator.EQUAL, True)
ENDS = "subscription.cancellation.date.timestampUNIX"
NAME = "daily/expire-paypal-cancellations"


async def expire(run: "Run[BackendWorld]") -> dict[str, Any]:
    """End those whose day has come; how many were looked at."""
    counts = {"checked": 0, "expired": 0, **run.state}
    over = Filter(ENDS, Operator.LESS_OR_EQUAL, unix_now())  # so it is a number, too
    async for page in pages_of(run.world.documents, USERS, PAYPAL, PENDING, over):
        for user in page:
            counts["checked"] += 1
            counts["expired"] += await _end_if_due(run, user.id)
        await run.checkpoint(counts, done=counts["checked"])
    return counts


async def _end_if_due(run: "Run[BackendWorld]", uid: str) -> int:
    payments = run.world.payments

    async def work(documents: DocumentTransaction) -> int:
        record = await documents.get(USERS, uid)
        subscription = account_of(uid, record or {}, payments.products).subscription
        cancellation = subscription["cancellation"]
        date = cast("dict[str, Any]", cancellation.get("date") or NEVER)
        if not cancellation.get("pending") or not 0 < date["timestampUNIX"] <= unix_now():
            return 0
        ended = ended_record({"name": NAME, "id": run.id}, payments.products.default)
        ended["expires"] = ended["cancellation"]["date"] = date
        documents.write(Merge(USERS, uid, updated(ended)))
        return 1

    async with run.transaction() as tx:
        return await payments.documents.transact(tx, work)


EXPIRE_PAYPAL: "Workflow[BackendWorld]" = Workflow(
    name=NAME,
    summary="Ends PayPal subscriptions that were cancelled and whose period is over.",
    run=expire,
)
