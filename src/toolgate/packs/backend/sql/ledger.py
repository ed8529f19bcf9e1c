"""The embedded ledger: a processor that keeps books and moves no money.

A subscription that it does not know yet is taken over from the user's record, with the one payment
that the record tells of.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, update

from toolgate.db.engine import Database
from toolgate.packs.backend.payments.money import major, minor, written
from toolgate.packs.backend.payments.periods import FREQUENCIES, next_end
from toolgate.packs.backend.payments.portal_links import PortalLink, PortalLinks
from toolgate.packs.backend.payments.preconditions import unix_of
from toolgate.packs.backend.payments.processor import (
    Account,
    Payment,
    ProcessorRefused,
    Refund,
    Subscription,
)
from toolgate.packs.backend.sql.inserts import insert_new
from toolgate.packs.backend.sql.payment_tables import charges, refunds, subscriptions

Row = Mapping[Any, Any]
DUE_AT_ONCE = 100
MOST = 1e9
"""A price above it is a mistake."""


class SqlLedger:
    """A processor in the gate's database; each request is a commit of its own."""

    name = "ledger"

    def __init__(self, database: Database, links: PortalLinks, currency: str) -> None:
        self._database = database
        self._currency = currency
        """Of what is sold as something unknown here."""
        self.links = links

    async def subscription(self, account: Account) -> Subscription:
        """The user's subscription, taken over from the record where it is new."""
        read_at = time.time_ns() // 1000
        row = await self._find(account.resource_id) or await self.take_over(account)
        _check_owner(row, account)
        return _subscription(row, read_at)

    async def take_over(self, account: Account, paid_at: int | None = None) -> Row:
        """Enter the subscription of a record, and its last payment, unless it is there."""
        row = _entry(account, self._currency)
        charge = _charge(row, row["started_at"] if paid_at is None else paid_at)

        def work(connection: Connection) -> Row:
            stored = insert_new(connection, subscriptions, row)
            if stored and _is_paid(row):
                connection.execute(insert(charges), charge)
            return _locked(connection, row["id"])

        async with self._database.transaction() as tx:
            return await tx.run(work)

    async def cancel(
        self,
        subscription: Subscription,
        *,
        at_once: bool,
        key: str,  # noqa: ARG002 (what is cancelled stays so, however often)
    ) -> Subscription:
        """End it, at once or with its period."""
        read_at = time.time_ns() // 1000
        values: dict[str, Any] = {"cancel_at_period_end": True}
        if at_once:
            now = int(time.time())
            values = {"status": "cancelled", "ended_at": now, "cancel_at_period_end": False}

        def work(connection: Connection) -> Row:
            row = _locked(connection, subscription.id)
            if row["status"] != "cancelled":
                these = update(subscriptions).where(subscriptions.c.id == subscription.id)
                connection.execute(these.values(values))
            return _locked(connection, subscription.id)

        async with self._database.transaction() as tx:
            return _subscription(await tx.run(work), read_at)

    async def payment(self, account: Account) -> Payment | None:
        """The last payment, with what went back of it; before the take-over, what is told of it."""
        last = select(charges).where(charges.c.subscription_id == account.resource_id)
        last = last.order_by(charges.c.paid_at.desc(), charges.c.id.desc()).limit(1)

        def look(connection: Connection) -> Payment | None:
            row = connection.execute(last).mappings().first()
            if row is None:
                return None
            back = select(refunds).where(refunds.c.charge_id == row["id"])
            returned = connection.execute(back.order_by(refunds.c.created_at)).mappings()
            return Payment(
                id=row["id"],
                amount=row["amount"],
                refunded=row["refunded"],
                currency=row["currency"],
                paid_at=row["paid_at"],
                refunds=tuple(_refund(one) for one in returned),
            )

        found = await self._database.read(look)
        if found is None and await self._find(account.resource_id) is None:
            return _told_payment(_entry(account, self._currency))
        return found

    async def refund(self, payment: Payment, amount: int, key: str) -> Refund:
        """Enter a refund, at most of what is left."""

        def work(connection: Connection) -> Refund:
            locked = select(charges).where(charges.c.id == payment.id).with_for_update()
            charge = connection.execute(locked).mappings().one()
            same = select(refunds).where(refunds.c.key == key)
            if found := connection.execute(same).mappings().first():
                return _refund(found)
            left = charge["amount"] - charge["refunded"]
            if not 0 < amount <= left:
                raise ProcessorRefused(
                    f"{written(amount, charge['currency'])} is more than is left of the payment "
                    f"({written(left, charge['currency'])})"
                )
            row = {
                "id": f"re_{secrets.token_hex(12)}",
                "charge_id": payment.id,
                "amount": amount,
                "currency": charge["currency"],
                "key": key,
                "created_at": int(time.time()),
            }
            connection.execute(insert(refunds), row)
            of_charge = update(charges).where(charges.c.id == payment.id)
            connection.execute(of_charge.values(refunded=charge["refunded"] + amount))
            return _refund(row)

        async with self._database.transaction() as tx:
            return await tx.run(work)

    async def portal(self, account: Account, return_url: str, *, may_cancel: bool) -> str:
        """The address of our own page; nothing is booked for it."""
        _check_owner(await self._find(account.resource_id), account)
        return self.links.make(PortalLink(account.uid, return_url, may_cancel))

    async def book_due(self, now: int) -> list[str]:
        """Renew or end what is due, a few at a time; return the users it is about."""
        due = select(subscriptions).where(subscriptions.c.period_end <= now)
        due = due.where(subscriptions.c.status == "active").order_by(subscriptions.c.period_end)

        def work(connection: Connection) -> list[str]:
            rows = connection.execute(due.limit(DUE_AT_ONCE).with_for_update()).mappings().all()
            for row in rows:
                _book(connection, row)
            return [row["uid"] for row in rows]

        async with self._database.transaction() as tx:
            return await tx.run(work)

    async def _find(self, id: str) -> Row | None:
        one = select(subscriptions).where(subscriptions.c.id == id)
        return await self._database.read(
            lambda connection: connection.execute(one).mappings().first(), quick=True
        )


def _check_owner(row: Row | None, account: Account) -> None:
    """Raise where the books have it as somebody else's."""
    if row is not None and row["uid"] != account.uid:
        raise ProcessorRefused(f"No such subscription: {account.resource_id}")


def _locked(connection: Connection, id: str) -> Row:
    one = select(subscriptions).where(subscriptions.c.id == id).with_for_update()
    return dict(connection.execute(one).mappings().one())


def _book(connection: Connection, row: Row) -> None:
    """End a subscription with its period, or charge for the next one."""
    values: dict[str, Any]
    end = row["period_end"]
    if row["cancel_at_period_end"]:
        values = {"status": "cancelled", "ended_at": end, "cancel_at_period_end": False}
    else:
        values = {
            "period_start": end,
            "period_end": next_end(end, row["frequency"], row["started_at"]),
            "trial_end": row["trial_end"],
        }
        if row["amount"] > 0:
            connection.execute(insert(charges), _charge(row, end))
    connection.execute(update(subscriptions).where(subscriptions.c.id == row["id"]).values(values))


def _entry(account: Account, currency: str) -> Row:
    """The row of a subscription as the user's record tells it."""
    told, payment = account.subscription, account.payment
    now = int(time.time())
    currency = (account.product.currency if account.product else currency).lower()
    frequency = payment.get("frequency")
    frequency = frequency if frequency in FREQUENCIES else "monthly"
    started = unix_of(payment.get("startDate")) or now
    expires = unix_of(told["expires"])
    trial_end = unix_of(told["trial"].get("expires"))
    in_trial = trial_end > now
    over = told["status"] == "cancelled"
    return {
        "id": account.resource_id,
        "uid": account.uid,
        "product": str(told["product"].get("id")),
        "status": told["status"],
        "frequency": frequency,
        "amount": minor(_price(account, frequency), currency),
        "currency": currency,
        "started_at": started,
        "period_start": started,
        "period_end": expires if expires > started else next_end(started, frequency, started),
        "trial_end": trial_end if in_trial else None,
        "cancel_at_period_end": told["cancellation"].get("pending") is True and not over,
        "ended_at": (expires or now) if over else None,
    }


def _price(account: Account, frequency: str) -> float:
    """What the record tells, or else what the product costs."""
    told = account.payment.get("price")
    if isinstance(told, int | float) and 0 < told < MOST:
        return told
    return float(account.product.prices.get(frequency, 0)) if account.product else 0


def _charge(row: Row, paid_at: int) -> Row:
    return {
        "id": f"ch_{secrets.token_hex(12)}",
        "subscription_id": row["id"],
        "amount": row["amount"],
        "refunded": 0,
        "currency": row["currency"],
        "paid_at": paid_at,
    }


def _is_paid(row: Row) -> bool:
    """Whether a record tells of a payment."""
    return row["amount"] > 0 and row["trial_end"] is None


def _told_payment(row: Row) -> Payment | None:
    """The payment that a record tells of, as the take-over would book it."""
    if not _is_paid(row):
        return None
    charge = _charge(row, row["started_at"])
    names = ("id", "amount", "refunded", "currency", "paid_at")
    return Payment(**{name: charge[name] for name in names})


def _subscription(row: Row, read_at: int) -> Subscription:
    trial_end = row["trial_end"]
    return Subscription(
        id=row["id"],
        uid=row["uid"],
        status=row["status"],
        started_at=row["started_at"],
        period_start=row["period_start"],
        period_end=row["period_end"],
        trialing=trial_end is not None and trial_end > time.time(),
        trial_end=trial_end,
        cancel_at=row["period_end"] if row["cancel_at_period_end"] else None,
        ended_at=row["ended_at"],
        frequency=row["frequency"],
        price=major(row["amount"], row["currency"]),
        product=row["product"],
        read_at=read_at,
    )


def _refund(row: Row) -> Refund:
    names = ("id", "amount", "currency", "key")
    return Refund(**{name: row[name] for name in names})
