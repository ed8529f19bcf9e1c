"""What operators do with mails that are not done with: look at them, deliver them, settle them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.backend.mail.queue import QueuedMail, Status
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.world import BackendWorld

family = Family("operator_email", BACKEND)

MAX_LISTED = 100
LISTING = ("operator.email.list",)
SECONDS = 3600.0
STAYS = (
    "Mails stay in the outbox while the setting mail.url is outbox:. Set it to a mail server "
    "(smtp://HOST:PORT or sendgrid:), restart, and ask again."
)


class Listing(Input):
    """Which mails."""

    status: Literal["waiting", "queued", "sending", "unknown"] | None = Field(
        default=None,
        description="Only these: waiting in the outbox, queued until their time, sending, or "
        "unknown; default: all.",
    )
    limit: Whole = Field(default=20, ge=1, le=MAX_LISTED, description="Most mails on a page.")
    cursor: str | None = Field(default=None, description="next_cursor of the page before.")


class MailInfo(Output):
    """A mail that is not done with."""

    id: str = Field(description="Its id, which is its messageId.")
    status: str = Field(description="waiting, queued, sending or unknown.")
    due_at: str = Field(description="Not sent before, ISO 8601.")
    attempts: int = Field(description="How often it was tried.")
    options: dict[str, Any] = Field(description="Recipients, sender, subject and so on.")
    recipients: list[dict[str, Any]] = Field(description="What became of it for each so far.")
    text: str = Field(description="What it says, as plain text.")


class Mails(Output):
    """A page of mails."""

    mails: list[MailInfo] = Field(description="Oldest first.")
    next_cursor: str | None = Field(description="For the next page; null on the last one.")


@family.tool(
    "operator.email.list",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Look at the outbox and the queue of mails",
    example={"status": "waiting"},
)
async def list_mails(ctx: Context[BackendWorld], args: Listing) -> Mails:
    """List mails that wait in the outbox, are held until their time, or may have been sent.

    What was sent is in the documents emails/ID.
    """
    cursors, listing = ctx.world.mail.links.cursors, (*LISTING, args.status)
    after = cursors.read(listing, args.cursor)
    status = Status(args.status) if args.status else None
    found = await ctx.world.mail.queue.page(status, after[0] if after else None, args.limit + 1)
    shown = found[: args.limit]
    more = cursors.make(listing, [shown[-1].id]) if len(found) > len(shown) else None
    return Mails(mails=[_info(one) for one in shown], next_cursor=more)


class Delivering(Input):
    """Which mails of the outbox."""

    id: str | None = Field(default=None, max_length=36, description="Only this one; default: all.")


class Delivered(Output):
    """How many came to which end."""

    counts: dict[str, int] = Field(
        description="How many mails were sent, failed, or are unknown; retried: to be tried again."
    )
    campaigns: int = Field(
        default=0,
        description="Campaigns whose kept mails are being sent now; list_campaigns tells more.",
    )
    note: str | None = Field(default=None, description="Why none was delivered.")


@family.tool(
    "operator.email.deliver",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.OUTSIDE, Target.TABLES, Target.DOCUMENTS],
    open_world=True,
    title="Deliver mails that wait in the outbox",
    slow=True,
    seconds=SECONDS,
)
async def deliver(ctx: Context[BackendWorld], args: Delivering) -> Delivered:
    """Deliver mails that waited in the outbox, now that the setting mail.url names a server."""
    mail = ctx.world.mail
    if args.id is not None and await mail.queue.get(args.id) is None:
        raise NotFound(f"No mail {args.id} waits in the outbox.")
    if not mail.mailer.delivers:
        return Delivered(counts={}, note=STAYS)
    counts = dict[str, int]()
    after: str | None = None
    while found := await mail.queue.page(Status.WAITING, after, MAX_LISTED):
        for one in found:
            after = one.id
            if args.id in (None, one.id) and await mail.queue.release(one.id):
                status = await mail.sending.deliver(one.id) or "sending"
                counts[status] = counts.get(status, 0) + 1
                await ctx.progress(sum(counts.values()))
    campaigns = 0 if args.id is not None else await ctx.world.marketing.deliver_kept()
    return Delivered(counts=counts, campaigns=campaigns)


class Resolution(Input):
    """What became of mails."""

    ids: list[Annotated[str, Field(min_length=1, max_length=36)]] = Field(
        min_length=1, max_length=MAX_LISTED, description="Their ids."
    )
    taken: bool = Field(description="Whether the mail server has taken them, as its log shows.")


class Resolved(Output):
    """What was settled."""

    settled: list[str] = Field(description="Ids of the mails that were unknown until now.")
    ignored: list[str] = Field(description="Ids of which no mail is unknown.")


@family.tool(
    "operator.email.resolve",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES, Target.DOCUMENTS],
    title="Say what became of mails that are unknown",
    example={"ids": ["-P6_mesc6p-hcg_jFaT9"], "taken": True},
)
async def resolve(ctx: Context[BackendWorld], args: Resolution) -> Resolved:
    """Settle mails of which nobody knew whether they were taken; they may be sent again then."""
    found = [await ctx.world.mail.queue.get(one) for one in dict.fromkeys(args.ids)]
    unknown = [one for one in found if one is not None and one.status is Status.UNKNOWN]
    for mail in unknown:
        await ctx.world.mail.sending.resolve(ctx.tx, mail, taken=args.taken)
    settled = [one.id for one in unknown]
    return Resolved(settled=settled, ignored=[one for one in args.ids if one not in settled])


def _info(mail: QueuedMail) -> MailInfo:
    return MailInfo(
        id=mail.id,
        status=mail.status.value,
        due_at=mail.due_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        attempts=mail.attempts,
        options=mail.options,
        recipients=[
            {
                "email": one.recipient.address.email,
                "field": one.recipient.field,
                "outcome": one.delivery.outcome.value if one.delivery else None,
                "words": one.delivery.words if one.delivery else None,
            }
            for one in mail.recipients
        ],
        text=mail.message.text,
    )
