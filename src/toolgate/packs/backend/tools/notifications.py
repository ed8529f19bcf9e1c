"""Push notifications."""

import contextlib
import hashlib
import time
from typing import Annotated, Any, cast
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT, TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.cursors import MAX_CHARACTERS
from toolgate.gate.errors import Unavailable
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.push.delivery import Audience, Tally
from toolgate.packs.backend.push.workflow import DIGEST, JOINED_FOR
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import MAX_IN_VALUES
from toolgate.workflows.declarations import RunStatus, stamp
from toolgate.workflows.runs import RunConflict

family = Family("messaging", BACKEND)

WORKFLOW = "send-notification"
REQUIRED = "Parameters <title> and <body> required"
INSIDE = " inside of the object notification"
MAX_TEXT = 4000
MAX_URL = 2000
MAX_TOKEN = 1000
MAX_BYTES = 3500
"""Of all that is shown: a message of Firebase has 4,096 bytes, the token among them."""
MAX_LIMIT = 10_000_000
SHOWN = 10
LOOKED_FOR = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.FAILED)
"""In this order: one that fails between two looks is found by the next one; one that is retried
meanwhile is joined by who starts it."""
MAX_LOOKED_AT = 500
LISTING = ("operator.notification.list",)


def _web_address(value: str, info: ValidationInfo) -> str:
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        message = "{field} must be an address such as https://example.com/"
        raise PydanticCustomError(TOLD_FORMAT, message, {"field": info.field_name})
    return value


Url = Annotated[str, Field(max_length=MAX_URL), AfterValidator(_web_address)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class NotificationContent(Input):
    """What a person sees."""

    title: Text = Field(description="The title.")
    body: Text = Field(description="The text.")
    icon: Url | None = Field(default=None, description="Address of an icon, for browsers.")
    image: Url | None = Field(default=None, description="Address of a picture.")
    click_action: Url | None = Field(
        default=None,
        description="Address that a click opens; `cb=TIME` is added to it, so that no cache "
        "answers with an old page. Firebase opens only https:// in browsers.",
    )

    @model_validator(mode="after")
    def _fits_a_message(self) -> "NotificationContent":
        size = len(orjson.dumps(self.model_dump(exclude_none=True)))
        if size > MAX_BYTES:
            message = "notification has {size} bytes, over the limit of {most}. Shorten the body"
            raise PydanticCustomError(TOLD, message, {"size": size, "most": MAX_BYTES})
        return self


class NotificationFilters(Input):
    """Whom it is for; without any, for everybody who subscribed."""

    token: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TOKEN,
        description="One token, sent to directly; the other filters count for nothing then.",
    )
    tags: Annotated[list[Text], Field(min_length=1, max_length=MAX_IN_VALUES)] | None = Field(
        default=None,
        description=f"Subscribers with at least one of these tags, {MAX_IN_VALUES} at most.",
    )
    owner: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] | None = Field(
        default=None, description="Subscribers who belong to this user, by uid."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = Field(
        default=None, description="Most subscribers to send to."
    )


class NotificationRequest(Input):
    """A notification, and whom it is for."""

    notification: Annotated[
        NotificationContent, WithJsonSchema(NotificationContent.model_json_schema())
    ] = Field(description="What is shown.")
    filters: Annotated[
        NotificationFilters, WithJsonSchema(NotificationFilters.model_json_schema())
    ] = Field(
        default=NotificationFilters(),
        description="Whom it is for; everybody unless given.",
    )

    @model_validator(mode="before")
    @classmethod
    def _has_title_and_body(cls, values: Any) -> Any:
        given: Any = cast("dict[str, Any]", values).get("notification", {})
        shown = cast("dict[str, Any]", given) if isinstance(given, dict) else None
        blank = shown is not None and any(shown.get(one) in (None, "") for one in ("title", "body"))
        if blank:
            outside = not {"title", "body"}.isdisjoint(cast("dict[str, Any]", values))
            raise PydanticCustomError(TOLD_MISSING, REQUIRED + (INSIDE if outside else ""))
        return values

    def audience(self) -> Audience:
        """Whom it is for."""
        return Audience(**self.filters.model_dump())

    def digest(self) -> str:
        """The same for the same notification to the same people: a call that is sent again."""
        said = self.model_dump_json(exclude_none=True)
        return hashlib.sha256(said.encode()).hexdigest()

    def fields(self, now: int) -> dict[str, str]:
        """What is sent."""
        shown = self.notification.model_dump(exclude_none=True)
        if link := shown.get("click_action"):
            shown["click_action"] = _fresh(link, now)
        return shown


def _fresh(link: str, now: int) -> str:
    """The address with a part that no cache has seen."""
    parts = urlsplit(link)
    query = f"{parts.query}&cb={now}" if parts.query else f"cb={now}"
    return urlunsplit(parts._replace(path=parts.path or "/", query=query))


class SentNotification(Output):
    """What became of it."""

    subscribers: int = Field(description="How many it was for.")
    batches: int = Field(description="In how many batches of 500.")
    sent: int = Field(description="How many messages were taken.")
    deleted: int = Field(description="Tokens that nobody has any more, which were deleted.")
    failed: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="Absent unless some were not sent: how many, by the reason. Their tokens stay. "
        "INTERRUPTED ones were on their way when the server was; they are not sent again.",
    )


@family.tool(
    "send_notification",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Send push notification",
    writes=[Target.OUTSIDE, Target.DOCUMENTS, Target.TABLES],
    open_world=True,
    slow=True,
    route=Route(f"{ROUTES}/admin/notification", method="POST"),
    example={
        "notification": {"title": "News", "body": "There is something new."},
        "filters": {"tags": ["news"]},
    },
)
async def send_notification(
    ctx: Context[BackendWorld], args: NotificationRequest
) -> SentNotification:
    """Send a push notification to everybody who subscribed, or to those that filters choose.

    Subscribers are the documents of the collection `notifications`: the id is the token, `owner`
    the user, `tags` a list. Sending goes on where the server stops meanwhile, and sends nothing
    twice. Unless settings name a service, notifications are kept in the outbox
    (`operator.notification.list`) and sent to nobody.
    """
    world, audience = ctx.world, args.audience()
    if ctx.dry_run:
        return _answer(await world.deliveries.count(audience))
    run = await _go_on(ctx, args.digest()) or await _start(ctx, args)
    record = await world.workflows.wait(run, ctx.progress)
    if record.result is None:
        raise Unavailable(record.error or f"The run {run} was cancelled.")
    return _answer(Tally.of(record.result))


async def _start(ctx: Context[BackendWorld], args: NotificationRequest) -> str:
    arguments = {
        "notification": args.fields(int(time.time())),
        "filters": args.filters.model_dump(exclude_none=True),
        DIGEST: args.digest(),
    }
    return await ctx.world.workflows.start_now(WORKFLOW, arguments, call=ctx.tx.call)


async def _go_on(ctx: Context[BackendWorld], digest: str) -> str | None:
    """The run of the same call that failed midway, or goes on after it did; None without one."""
    workflows = ctx.world.workflows
    since = stamp(workflows.runs.clock() - JOINED_FOR)
    for status in LOOKED_FOR:
        for one in await workflows.list(WORKFLOW, status=status, limit=MAX_LOOKED_AT):
            if one.arguments.get(DIGEST) == digest and (
                one.ended_at is None or one.ended_at > since
            ):
                if one.ended:
                    await _retry(ctx, one.id)
                return one.id
    return None


async def _retry(ctx: Context[BackendWorld], run: str) -> None:
    """Let it go on, unless somebody else did so just now."""
    runs = ctx.world.workflows.runs
    with contextlib.suppress(RunConflict):
        async with runs.database.transaction() as tx:
            tx.call = ctx.tx.call
            await runs.retry(tx, run)


def _answer(tally: Tally) -> SentNotification:
    failed = {"failed": tally.failed} if tally.failed else {}
    return SentNotification(
        subscribers=tally.subscribers,
        batches=tally.batches,
        sent=tally.sent,
        deleted=tally.deleted,
        **failed,
    )


class OutboxPage(Input):
    """Which part of the outbox."""

    limit: Whole = Field(default=20, ge=1, le=100, description="Most entries, 1 to 100.")
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CHARACTERS,
        description="`next_cursor` of the page before; leave it out for the newest.",
    )


class KeptPush(Output):
    """Notifications that were kept at once."""

    number: int = Field(description="Counts up.")
    notification: dict[str, Any] = Field(description="What would have been shown.")
    recipients: int = Field(description="To how many tokens.")
    tokens: list[str] = Field(description=f"These, or the first {SHOWN} of them.")
    created_at: str = Field(description="When, ISO 8601.")


class KeptPushes(Output):
    """A page of the outbox."""

    notifications: list[KeptPush] = Field(description="The newest first.")
    next_cursor: str = Field(
        default="", description="Where the next page begins; absent at the end."
    )


@family.tool(
    "operator.notification.list",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Look at the outbox of push notifications",
    example={"limit": 5},
)
async def list_outbox(ctx: Context[BackendWorld], args: OutboxPage) -> KeptPushes:
    """List push notifications that are kept in the outbox, the newest first.

    It gets something only while settings name no service that sends.
    """
    cursors = ctx.world.cursors
    after = cursors.read(LISTING, args.cursor)
    rows = await ctx.world.push_outbox.page(after[0] if after else None, args.limit + 1)
    shown = rows[: args.limit]
    more = (
        {"next_cursor": cursors.make(LISTING, [shown[-1].number])} if len(rows) > len(shown) else {}
    )
    return KeptPushes(
        notifications=[
            KeptPush(
                number=one.number,
                notification=one.notification,
                recipients=one.recipients,
                tokens=list(one.tokens[:SHOWN]),
                created_at=one.created_at,
            )
            for one in shown
        ],
        **more,
    )
