"""How often users may use what they pay for: counters in their records, limits of products."""

import math
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from toolgate.db.engine import Database
from toolgate.gate.access_checks import AccessRequest
from toolgate.gate.errors import RateLimited
from toolgate.gate.principal import Role
from toolgate.packs.backend.products import Products
from toolgate.packs.backend.subscriptions import subscription_of
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    DocumentStore,
    DocumentTransaction,
    Merge,
    Order,
    Query,
    Write,
)
from toolgate.ports.users import USERS, Record, timestamp_record
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolgate.packs.backend.world import BackendWorld

Clock = Callable[[], datetime]
BATCH = 100


@dataclass(frozen=True, slots=True)
class Counter:
    """How often a metric was used: this month, today, ever."""

    monthly: int
    daily: int
    total: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts uses, and refuses those over the limit of the user's product."""

    documents: DocumentStore
    database: Database
    products: Products
    metered: "Mapping[str, str]"
    """The metric that a call of a tool counts for."""
    clock: Clock = lambda: datetime.now(UTC)

    async def count(self, uid: str, metric: str, id: str | None = None) -> Counter:
        """Count one use; raises `RateLimited` where it would be one too many, and counts nothing.

        `id` names what was used last.
        """
        now = self.clock()

        async def work(documents: DocumentTransaction) -> Counter:
            record = await documents.get(USERS, uid)
            used = counter_of(record, metric, now)
            self._check(record, metric, used, now)
            after = Counter(used.monthly + 1, used.daily + 1, used.total + 1)
            last = {"id": id, **timestamp_record(now)}
            stored = {
                "monthly": after.monthly,
                "daily": after.daily,
                "total": after.total,
                "last": last,
            }
            documents.write(Merge(USERS, uid, {"usage": {metric: stored}}))
            return after

        async with self.database.transaction() as tx:
            return await self.documents.transact(tx, work)

    def _check(self, record: Record | None, metric: str, used: Counter, now: datetime) -> None:
        bought = self.products.find(subscription_of(record)["product"]["id"])
        product = bought or self.products.default
        limit = product.limits.get(metric)
        if limit is None:
            return
        days = monthrange(now.year, now.month)[1]
        of = f"of product {product.name}"
        if used.monthly >= limit:
            message = f"You have used all {limit} {metric} a month {of}."
            raise RateLimited(message, _seconds_to(_next_month(now), now))
        today, until_today = math.ceil(limit / days), math.ceil(limit * now.day / days)
        if used.daily >= today or used.monthly >= until_today:
            message = f"You have used all {metric} of today: {limit} a month {of}, {today} a day."
            raise RateLimited(message, _seconds_to(_midnight(now) + timedelta(days=1), now))


def counter_of(record: Record | None, metric: str, now: datetime) -> Counter:
    """What counts now: uses of an earlier day or month do not, whether reset or not."""
    usage = _map((record or {}).get("usage"))
    stored = _map(usage.get(metric))
    last = _number(_map(stored.get("last")).get("timestampUNIX"))
    today, month = _midnight(now), _midnight(now).replace(day=1)
    return Counter(
        monthly=_number(stored.get("monthly")) if last >= month.timestamp() else 0,
        daily=_number(stored.get("daily")) if last >= today.timestamp() else 0,
        total=_number(stored.get("total")),
    )


async def check_usage(world: "BackendWorld", request: AccessRequest) -> str | None:
    """Count a call of a metered tool by the user it is made for; admins are not counted."""
    metric = world.usage.metered.get(request.tool)
    caller = request.principal
    if metric is not None and caller.user_id is not None and Role.ADMIN not in caller.roles:
        await world.usage.count(caller.user_id, metric, request.tool)
    return None


async def reset_usage(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Set to 0 what was used on an earlier day, and in an earlier month; whenever it runs."""
    now = run.world.usage.clock()
    after: str | None = run.state.get("after")
    reset = run.state.get("reset", 0)
    while True:
        start = Cursor((after,), inclusive=False) if after else None
        some = Query(USERS, order=[Order(DOCUMENT_ID)], limit=BATCH, start=start)
        found = await run.world.documents.query(some)
        if not found:
            return {"reset": reset}
        after = found[-1].id
        writes: list[Write] = [
            Merge(USERS, one.id, {"usage": fresh})
            for one in found
            if (fresh := _reset(one.fields, now))
        ]
        reset += len(writes)
        async with run.transaction() as tx:
            if writes:
                await run.world.documents.write(tx, *writes)
            await run.checkpoint_in(tx, {"after": after, "reset": reset}, done=reset)


RESET_USAGE: "Workflow[BackendWorld]" = Workflow(
    name="daily/reset-usage",
    summary="Set counters of usage to 0 whose day or month is over.",
    run=reset_usage,
)


def _reset(record: Record, now: datetime) -> Record:
    """The counters of a record that are not 0 and begin anew."""
    fresh: Record = {}
    for metric, counters in _map(record.get("usage")).items():
        stored, counts = _map(counters), counter_of(record, metric, now)
        ended = {"daily": counts.daily == 0, "monthly": counts.monthly == 0}
        if used := {one: 0 for one in ended if ended[one] and _number(stored.get(one))}:
            fresh[metric] = used
    return fresh


def _map(value: Any) -> Record:
    return cast("Record", value) if isinstance(value, dict) else {}


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _next_month(now: datetime) -> datetime:
    return (_midnight(now).replace(day=1) + timedelta(days=32)).replace(day=1)


def _seconds_to(moment: datetime, now: datetime) -> int:
    return math.ceil((moment - now).total_seconds())
