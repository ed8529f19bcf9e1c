"""Subscriptions, as their holders see them."""

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import Forbidden, InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Principal, Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.subscriptions import public_subscription
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS

family = Family("payments", BACKEND)


class Moment(Output):
    """A point in time; 1970 stands for never."""

    timestamp: str = Field(description="ISO 8601.")
    timestampUNIX: int = Field(description="Seconds since 1970.")  # noqa: N815 (the record's word)


class SubscribedProduct(Output):
    """A product."""

    id: str = Field(description="Its id; `basic` for who bought nothing.")
    name: str = Field(description="What people call it.")


class Trial(Output):
    """Whether there is, or was, a time without payment."""

    claimed: bool = Field(description="Whether the user has had one.")
    expires: Moment = Field(description="When it ends, or ended.")


class Cancellation(Output):
    """A cancellation."""

    pending: bool = Field(description="Whether the subscription ends with its period.")
    date: Moment = Field(description="When it ends.")


class Payment(Output):
    """The payments of a subscription."""

    processor: str | None = Field(description="Through whom; null for who pays nothing.")
    frequency: str | None = Field(description="monthly, annually, weekly or daily.")
    startDate: Moment = Field(description="Since when.")  # noqa: N815 (the record's word)


class SubscriptionDetails(Output):
    """A subscription."""

    product: SubscribedProduct = Field(description="What is subscribed to.")
    status: str = Field(description="active, suspended or cancelled.")
    expires: Moment = Field(description="Until when it is paid.")
    trial: Trial = Field(description="The trial, if there was one.")
    cancellation: Cancellation = Field(description="Whether it was cancelled.")
    payment: Payment = Field(description="How it is paid.")


class Subscription(Output):
    """A user's subscription."""

    subscription: SubscriptionDetails = Field(
        description="The subscription; with its defaults where the user has none."
    )


class SubscriptionRequest(Input):
    """Whose subscription."""

    uid: str | None = Field(
        default=None,
        max_length=1500,
        description="Id of the user; default: the user you act for. Others need an admin.",
    )


@family.tool(
    "get_subscription",
    role=Role.USER,
    effect=Effect.READ,
    title="Get subscription info for a user",
    route=Route(f"{ROUTES}/user/subscription"),
    example={"uid": "_test-premium-active"},
)
async def get_subscription(ctx: Context[BackendWorld], args: SubscriptionRequest) -> Subscription:
    """Get the subscription of the user you act for; as an admin, of any user.

    Product, status, period, trial and cancellation; `get_user` has the whole record.
    """
    uid = _subscriber(ctx.principal, args.uid)
    record = None if broken_id_rule(uid) else await ctx.world.documents.get(USERS, uid)
    if record is None and uid != ctx.principal.user_id:
        raise NotFound("User not found")
    return Subscription.model_validate({"subscription": public_subscription(record)})


def _subscriber(caller: Principal, asked: str | None) -> str:
    """The user whose subscription is asked for, if this caller may know it.

    Somebody else's is refused before anything is read: no answer tells which users there are.
    """
    if asked is not None and asked != caller.user_id and Role.ADMIN not in caller.roles:
        raise Forbidden("Admin required")
    uid = asked or caller.user_id
    if not uid:
        message = "Give the uid of a user: these credentials belong to none."
        raise InvalidArguments([Problem("uid", "missing", message)])
    return uid
