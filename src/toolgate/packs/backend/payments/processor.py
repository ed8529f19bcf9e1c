"""Whoever takes the money: what is asked of a payment processor, and how it can fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.packs.backend.payments.portal_links import PortalLinks
from toolgate.packs.backend.products import Product


@dataclass(frozen=True, slots=True)
class Account:
    """A user, as far as payments go."""

    uid: str
    subscription: Mapping[str, Any]
    """As in the user's record, defaults included."""
    product: Product | None = None
    """What is subscribed to, where that is something known."""

    @property
    def payment(self) -> Mapping[str, Any]:
        """Who is paid, and under which ids."""
        return self.subscription["payment"]

    @property
    def resource_id(self) -> str:
        """The subscription's id at the processor."""
        return str(self.payment.get("resourceId") or "")

    @property
    def order_id(self) -> str | None:
        """The order that the subscription came from."""
        return self.payment.get("orderId") or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription as its processor tells it; times are unix seconds."""

    id: str
    status: str
    """`active`, `suspended` or `cancelled`."""
    started_at: int
    period_start: int
    period_end: int
    trialing: bool = False
    trial_end: int | None = None
    cancel_at: int | None = None
    """When it will end, where that is decided."""
    ended_at: int | None = None
    frequency: str | None = None
    price: float | None = None
    product: str | None = None
    """The product's id here, where the processor tells one that is known."""
    customer: str | None = None
    uid: str | None = None
    """The user it was made for, where the processor was told."""
    read_at: int = 0
    """When it was asked for, in microseconds: of two tellings, the later one holds."""

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.status == "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """Money that went back; amounts are in minor units."""

    id: str
    amount: int
    currency: str
    key: str | None = None
    """The idempotency key of the request of ours that it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """The last payment for a subscription; amounts are in minor units."""

    id: str
    amount: int
    refunded: int
    currency: str
    paid_at: int
    refunds: tuple[Refund, ...] = ()


class ProcessorRefused(Exception):
    """The processor will not do it; nothing was done. The message is fit for a caller."""


class ProcessorSilent(Exception):
    """No usable answer; whether anything was done is not known. The message is fit for a caller."""


class ProcessorBusy(Exception):
    """The processor cannot do it now; nothing was done. The message is fit for a caller."""


class Processor(Protocol):
    """Takes money. A request with a key that was used before does nothing new."""

    name: str

    async def subscription(self, account: Account) -> Subscription:
        """The subscription of a user."""
        ...

    async def cancel(self, subscription: Subscription, *, at_once: bool, key: str) -> Subscription:
        """End it, at once or with the period that is paid for."""
        ...

    async def payment(self, account: Account) -> Payment | None:
        """The last payment for it that went through."""
        ...

    async def refund(self, payment: Payment, amount: int, key: str) -> Refund:
        """Give money back."""
        ...

    async def portal(self, account: Account, return_url: str, *, may_cancel: bool) -> str:
        """The address of a page where the user looks after the subscription, or looks at it."""
        ...


class Ledger(Processor, Protocol):
    """The embedded processor."""

    links: PortalLinks

    async def take_over(self, account: Account, paid_at: int | None = None) -> Mapping[str, Any]:
        """Enter the subscription of a record, and its last payment, unless it is there."""
        ...

    async def book_due(self, now: int) -> list[str]:
        """Renew or end what is due, a few at a time; return the users it is about."""
        ...


class EventSource(Protocol):
    """A processor that tells of events; what they are about is asked for anew."""

    async def find(self, id: str) -> Subscription:
        """A subscription by its id."""
        ...

    async def subscription_of_payment(self, intent: str) -> str | None:
        """The id of the subscription that a payment intent was for."""
        ...
