"""Subscriptions: cancelling them, giving payments back, and a page to look after them."""

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import Forbidden, InvalidArguments, Problem
from toolgate.gate.principal import Principal, Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.payments import cancelling, portals, refunding
from toolgate.packs.backend.payments.preconditions import check_confirmed
from toolgate.packs.backend.world import BackendWorld

family = Family("payments", BACKEND)

CANCEL = "cancel_subscription"
MAX_REASON = 500
MAX_FEEDBACK = 5_000
MAX_UID = 1500
WHOSE = "Whose subscription it is; if unset, the caller's own. For admins."


class PortalRequest(Input):
    """Which portal page."""

    returnUrl: str | None = Field(  # noqa: N815 (as in the seed)
        default=None,
        max_length=2000,
        description="Where the page leads back to: an address of this server, or of a host in the "
        "setting `payments.return_hosts`. If unset, this server.",
    )
    uid: str | None = Field(default=None, min_length=1, max_length=MAX_UID, description=WHOSE)


class Cancellation(Input):
    """What is cancelled, and why."""

    confirmed: bool = Field(description="Must be true: the subscription is to be cancelled.")
    reason: str | None = Field(
        default=None, max_length=MAX_REASON, description="Why, in a few words."
    )
    feedback: str | None = Field(
        default=None, max_length=MAX_FEEDBACK, description="What the user says about it."
    )
    uid: str | None = Field(default=None, min_length=1, max_length=MAX_UID, description=WHOSE)


class RefundRequest(Input):
    """What goes back, and why."""

    reason: str = Field(min_length=1, max_length=MAX_REASON, description="Why, in a few words.")
    confirmed: bool = Field(description="Must be true: the payment is to be refunded.")
    feedback: str | None = Field(
        default=None, max_length=MAX_FEEDBACK, description="What the user says about it."
    )
    uid: str | None = Field(default=None, min_length=1, max_length=MAX_UID, description=WHOSE)


class Cancelled(Output):
    """The processor has confirmed it."""

    success: bool = Field(description="Always true: the processor has confirmed it.")


class RefundTold(Output):
    """Money that went back, as the processor says."""

    amount: float = Field(description="How much, in the currency's own unit: 4.99.")
    currency: str = Field(description="The currency, in three small letters.")
    full: bool = Field(description="Whether it is the whole payment.")


class Refunded(Output):
    """The processor has confirmed it."""

    success: bool = Field(description="Always true: the processor has confirmed it.")
    refund: RefundTold = Field(description="What went back.")


class Portal(Output):
    """A page to look after a subscription."""

    url: str = Field(description="The address of the page, good for a while; for this user alone.")


def _uid(principal: Principal, given: str | None) -> str:
    """Whose subscription a call is about."""
    if given is not None:
        if Role.ADMIN not in principal.roles and given != principal.user_id:
            raise Forbidden("Admin required.")
        return given
    if principal.user_id is None:
        message = "These credentials belong to no user. Say whose subscription it is with uid."
        raise InvalidArguments([Problem("uid", "required", message)])
    return principal.user_id


@family.tool(
    CANCEL,
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    title="Cancel subscription at period end",
    writes=[Target.DOCUMENTS, Target.TABLES, Target.OUTSIDE],
    route=Route(f"{ROUTES}/payments/cancel", method="POST"),
    example={"confirmed": True, "reason": "Too expensive", "uid": "_test-premium-active"},
)
async def cancel_subscription(ctx: Context[BackendWorld], args: Cancellation) -> Cancelled:
    """Cancel a paid subscription: it ends with the period that is paid for, a trial at once.

    It must be older than 24 hours and not be pending cancellation already. To give money back,
    call `refund_payment` afterwards.
    """
    check_confirmed(args.confirmed, "Cancellation")  # before it matters whose it is
    await cancelling.cancel(
        ctx.world.payments,
        ctx.tx,
        _uid(ctx.principal, args.uid),
        said={"reason": args.reason, "feedback": args.feedback},
    )
    return Cancelled(success=True)


@family.tool(
    "refund_payment",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    title="Process a refund",
    writes=[Target.DOCUMENTS, Target.TABLES, Target.OUTSIDE],
    route=Route(f"{ROUTES}/payments/refund", method="POST"),
    example={
        "reason": "Not what I expected",
        "confirmed": True,
        "uid": "_test-premium-cancelling",
    },
)
async def refund_payment(ctx: Context[BackendWorld], args: RefundRequest) -> Refunded:
    """Refund the last payment of a subscription and end the subscription at once.

    The subscription must be cancelled or pending cancellation: call `cancel_subscription` first.
    A payment of the last 7 days is refunded in full, an older one for the time that is left, one
    of more than 180 days ago not at all.
    """
    check_confirmed(args.confirmed, "Refund")
    refund = await refunding.refund(
        ctx.world.payments,
        ctx.tx,
        _uid(ctx.principal, args.uid),
        said={"reason": args.reason, "feedback": args.feedback},
    )
    return Refunded(success=True, refund=RefundTold(**refund))


@family.tool(
    "get_payment_portal",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Generate a billing portal link",
    open_world=True,
    route=Route(f"{ROUTES}/payments/portal", method="POST"),
    example={"uid": "_test-premium-active"},
)
async def get_payment_portal(ctx: Context[BackendWorld], args: PortalRequest) -> Portal:
    """Make a link to a page where a user looks after a paid subscription.

    Every call makes a new link. Whoever has it may use the page, so hand it to that user alone. The
    page cancels only if you may call `cancel_subscription`; if not, it shows and changes nothing.
    """
    uid = _uid(ctx.principal, args.uid)
    may_cancel = ctx.world.tools.may_call(ctx.principal, CANCEL)
    url = await portals.portal(ctx.world.payments, uid, args.returnUrl, may_cancel=may_cancel)
    return Portal(url=url)
