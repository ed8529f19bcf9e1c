"""Mail to people: sent now, or at its time."""

from datetime import datetime, timedelta
from typing import Any, cast

import anyio.to_thread
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.errors import (
    Conflict,
    GateError,
    InvalidArguments,
    OutcomeUnknown,
    Problem,
    Unavailable,
)
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.dates import BadDate, Moment, read_due
from toolgate.packs.backend.mail.addresses import CONTROL
from toolgate.packs.backend.mail.composing import Wish
from toolgate.packs.backend.mail.content import BadContent
from toolgate.packs.backend.mail.port import Delivery, MailUnavailable, Outcome
from toolgate.packs.backend.mail.queue import QueuedMail
from toolgate.packs.backend.mail.recipients import NO_RECIPIENT, Recipients, find_recipients
from toolgate.packs.backend.mail.rendering import TEMPLATES
from toolgate.packs.backend.mail.senders import DEFAULT, PRESETS
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.push_ids import push_id

family = Family("messaging", BACKEND)

MAX_SUBJECT = 500
MAX_HTML = 500_000
MAX_CATEGORIES = 10
MAX_GROUP = 2**31 - 1
FAR_AHEAD = timedelta(hours=71)
"""Providers hold a mail no longer than 72 hours."""
PEOPLE = "An email address, a uid, an object {email, name}, or an array of these."
NO_SUBJECT = "Parameter subject is required"
SECONDS = 120.0


class Email(Input):
    """A mail."""

    to: Any = Field(description=PEOPLE)
    cc: Any = Field(default=None, description=PEOPLE)
    bcc: Any = Field(default=None, description=f"{PEOPLE} No other recipient sees these.")
    subject: str | None = Field(
        default=None, max_length=MAX_SUBJECT, description="The subject; required."
    )
    template: str = Field(
        default="card", description=f"{', '.join(TEMPLATES)}; any other is taken as card."
    )
    html: str | None = Field(
        default=None,
        max_length=MAX_HTML,
        description="The whole mail as HTML, instead of a template.",
    )
    data: dict[str, Any] | None = Field(
        default=None,
        description="What the template shows: content{title, message, button{text, url}, "
        "discountCode}, order{id, date, currency, items[{name, quantity, price}], total}, "
        "feedback{url}. All of it is plain text.",
    )
    sender: str | None = Field(
        default=None, description=f"Who it comes from: {', '.join(PRESETS)}; default: {DEFAULT}."
    )
    group: str | int | None = Field(
        default=None,
        description="Unsubscribe group, by name or number; default: that of the sender.",
    )
    categories: list[str] | None = Field(
        default=None, max_length=MAX_CATEGORIES, description="Labels, for statistics."
    )
    sendAt: Moment = Field(  # noqa: N815 (the seed's name)
        default=None, description="When to send it: ISO 8601 or unix seconds; default: now."
    )
    copy_contact: bool | None = Field(
        default=True,
        alias="copy",
        description="Whether the brand's contact address gets a copy (cc).",
    )

    @model_validator(mode="before")
    @classmethod
    def _needs_recipient_and_subject(cls, values: Any) -> Any:
        if isinstance(values, dict):
            given = cast("dict[str, Any]", values)
            if not given.get("to"):
                raise PydanticCustomError(TOLD_MISSING, NO_RECIPIENT)
            if given.get("subject") in (None, ""):
                raise PydanticCustomError(TOLD_MISSING, NO_SUBJECT)
        return cast("Any", values)


class EmailResult(Output):
    """What became of a mail."""

    status: str = Field(description="`sent`: handed over now; `queued`: held here until its time.")
    options: dict[str, Any] | None = Field(
        default=None, description="The mail as it was understood: recipients, sender, template."
    )
    response: dict[str, Any] | None = Field(
        default=None,
        description="messageId (the record is the document emails/messageId), provider, and for "
        "each recipient accepted, refused or unknown in the server's words. With provider `outbox` "
        "nobody gets the mail before an operator delivers it.",
    )


class SendUnknown(OutcomeUnknown):
    """A mail server was handed a mail and did not confirm it."""

    def __init__(self, message: str) -> None:
        GateError.__init__(self, message)


class NotSent(GateError):
    """Mail cannot be sent with these settings."""

    kind = "unavailable"
    status = 500
    code = "SERVER_ERROR"
    rpc = -32500


@family.tool(
    "send_email",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.OUTSIDE, Target.TABLES, Target.DOCUMENTS],
    open_world=True,
    title="Send transactional email",
    route=Route(f"{ROUTES}/admin/email", method="POST"),
    seconds=SECONDS,
    example={
        "to": "_test-basic",
        "subject": "Welcome",
        "data": {"content": {"title": "Welcome", "message": "Good to have you here."}},
    },
)
async def send_email(ctx: Context[BackendWorld], args: Email) -> EmailResult:
    """Send an email to addresses or users, from a template or as HTML, now or at a later time.

    Each person gets it once, however often they are named. Who unsubscribed from its group gets
    none. If the mail server may have taken it and did not say so, it is not sent again.
    """
    mail, sending = ctx.world.mail, ctx.world.mail.sending
    now = sending.clock()
    send_at = _send_at(args, now)
    sender = args.sender or DEFAULT
    group = args.group if args.group not in (None, "") else sender
    _check(args, sender)
    recipients = await find_recipients(
        ctx.world.documents, {"to": args.to, "cc": args.cc, "bcc": args.bcc}
    )
    if args.copy_contact is not False and mail.composer.contact is not None:
        recipients.add("cc", mail.composer.contact)
    unwilling = await _leave_out_unsubscribed(ctx.world, recipients, str(group))
    wish = Wish(
        id=push_id(),
        subject=args.subject or "",
        sender=sender,
        group=group,
        template=args.template,
        html=args.html,
        data=args.data,
        categories=tuple(args.categories or ()),
        send_at=send_at,
    )
    try:
        # A long text takes a while, which other calls do not wait for.
        composed = await anyio.to_thread.run_sync(mail.composer.compose, wish, recipients, now)
    except BadContent as problem:
        raise InvalidArguments(
            [Problem(problem.field, "value", f"{problem.field} {problem}")]
        ) from None
    composed.options["unsubscribed"] = unwilling
    if send_at is not None and (send_at - now >= FAR_AHEAD or not mail.mailer.holds):
        await sending.hold(ctx.tx, composed)
        held: dict[str, Any] = {"messageId": composed.id, "delivery": "queued"}
        return EmailResult(status="queued", options=composed.options, response=held)
    return await _send(ctx, composed)


async def _send(ctx: Context[BackendWorld], mail: QueuedMail) -> EmailResult:
    """Hand it over; what failed is stored too, before it is told."""
    sending = ctx.world.mail.sending
    try:
        done = await sending.send_now(mail)
    except MailUnavailable as problem:
        await _abandon(ctx, mail)
        raise NotSent(str(problem)) from None
    error = _error(done.deliveries())
    if error is None:
        await sending.complete(ctx.tx, done)
        return EmailResult(status="sent", options=done.options, response=sending.response(done))
    async with sending.database.transaction() as tx:
        await sending.complete(tx, done)
    raise error


async def _abandon(ctx: Context[BackendWorld], mail: QueuedMail) -> None:
    sending = ctx.world.mail.sending
    async with sending.database.transaction() as tx:
        await sending.queue.remove(tx, mail.id)


def _error(deliveries: list[Delivery]) -> GateError | None:
    """What to tell where nobody gets the mail, or nobody knows."""
    if any(one.outcome in (Outcome.ACCEPTED, Outcome.KEPT) for one in deliveries):
        return None
    told = "; ".join(dict.fromkeys(f"{one.email}: {one.words}" for one in deliveries))
    if any(one.outcome is Outcome.UNKNOWN for one in deliveries):
        return SendUnknown(f"Whether the mail was sent is not known. {told}. It is not sent again.")
    if all(one.temporary for one in deliveries):
        return Unavailable(f"The mail was not sent. {told}. Try again later.")
    return InvalidArguments(
        [Problem("to", "refused", f"The mail server refuses every recipient. {told}")]
    )


async def _leave_out_unsubscribed(
    world: BackendWorld, recipients: Recipients, group: str
) -> list[str]:
    """Take out who does not want mail of this group; their addresses."""
    emails = [one.key for _, one in recipients.every()]
    unwilling = await world.consent.unwilling(emails, group)
    left_out = [one.email for _, one in recipients.every() if one.key in unwilling]
    for people in (recipients.to, recipients.cc, recipients.bcc):
        people[:] = [one for one in people if one.key not in unwilling]
    if not recipients.to:
        names = ", ".join(left_out)
        raise Conflict(
            f"Nothing is sent: {names} unsubscribed from the group {group!r}. Choose another "
            "sender or group only if this mail does not belong to that group."
        )
    return left_out


def _send_at(args: Email, now: datetime) -> datetime | None:
    """When to send it, where that is not now."""
    if args.sendAt is None or args.sendAt == "":
        return None
    try:
        moment = read_due(args.sendAt, now)
    except BadDate as problem:
        raise InvalidArguments([Problem("sendAt", "format", f"sendAt {problem}")]) from None
    return moment if moment > now else None


def _check(args: Email, sender: str) -> None:
    """Refuse what would smuggle in a header, and a sender that there is not."""
    problems = list[Problem]()
    if CONTROL.search(args.subject or ""):
        problems.append(
            Problem("subject", "format", "subject has a line break or another control character")
        )
    if sender not in PRESETS:
        options = ", ".join(PRESETS)
        problems.append(Problem("sender", "value", f"sender must be one of: {options}"))
    for number, one in enumerate(args.categories or []):
        if not one.isprintable() or not one or len(one) > 100:
            name = f"categories[{number}]"
            problems.append(Problem(name, "format", f"{name} must be a word or a few, on one line"))
    if isinstance(args.group, str) and (not args.group.isprintable() or len(args.group) > 100):
        problems.append(Problem("group", "format", "group must be a name on one line"))
    if isinstance(args.group, int) and not 0 < args.group <= MAX_GROUP:
        problems.append(Problem("group", "range", f"group must be from 1 to {MAX_GROUP}"))
    if problems:
        raise InvalidArguments(problems)
