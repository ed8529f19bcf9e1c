"""Campaigns: messages to many, sent by mail or push when they are due."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.fields import Between
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.dates import BadDate, Moment, read_date, read_due
from toolgate.packs.backend.mail.addresses import CONTROL
from toolgate.packs.backend.mail.senders import PRESETS
from toolgate.packs.backend.marketing.campaigns import (
    CampaignFilter,
    changed,
    new_campaign,
)
from toolgate.packs.backend.marketing.segments import SEGMENTS
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import Fields
from toolgate.ports.push_ids import push_id
from toolgate.ports.rules import broken_fields_rule

family = Family("marketing", BACKEND)

CAMPAIGN = f"{ROUTES}/marketing/campaign"
MAX_LIMIT = 1000
MAX_TEXT = 1000
ID_REQUIRED = "Campaign ID is required"
NOBODY = (
    "say who gets the campaign: name segments, or set all to true for everybody who agreed. "
    f"Segments are: {', '.join(SEGMENTS)}"
)
Id = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
MAX_DATA_BYTES = 128 * 1024


def _storable(data: Fields) -> Fields:
    """What templates show is kept in the campaign's document, so a document's rules hold."""
    try:
        too_long = len(orjson.dumps(data)) > MAX_DATA_BYTES
    except TypeError:  # what is no JSON breaks a rule
        too_long = False
    problem = f"must have at most {MAX_DATA_BYTES} bytes as JSON" if too_long else None
    if problem := problem or broken_fields_rule(data):
        raise PydanticCustomError(TOLD, "data {problem}", {"problem": problem})
    return data


Data = Annotated[dict[str, Any], AfterValidator(_storable)]
Segments = Annotated[list[str], Field(max_length=50)]
SETTINGS = (
    "name",
    "subject",
    "preheader",
    "template",
    "data",
    "segments",
    "excludeSegments",
    "all",
    "sender",
)
"""The arguments that are kept in a campaign's `settings`."""


class ListCampaigns(Input):
    """Which campaigns."""

    id: Id | None = Field(default=None, description="One campaign.")
    start: Moment = Field(
        default=None, description="Sent at this time or later: ISO 8601 or unix seconds."
    )
    end: Moment = Field(default=None, description="Sent at this time or earlier.")
    status: Literal["pending", "processing", "sent", "failed"] | None = Field(
        default=None, description="Only those that are there."
    )
    type: Literal["email", "push"] | None = Field(
        default=None, description="Only those by mail, or by push."
    )
    limit: Annotated[int, Between(1, MAX_LIMIT)] = Field(
        default=100, description="Most campaigns to list."
    )


class CreateCampaign(Input):
    """A campaign."""

    name: Text = Field(description="What it is called; the title of a push notification.")
    subject: Text = Field(description="Subject of the mail; the text of a push notification.")
    type: Literal["email", "push"] = Field(default="email", description="By mail or push.")
    preheader: str | None = Field(
        default=None, max_length=MAX_TEXT, description="What mail clients show after the subject."
    )
    template: str = Field(
        default="card",
        max_length=100,
        description="card, plain, order or feedback; any other is card.",
    )
    data: Data | None = Field(
        default=None,
        description="`content` with title, message, button {text, url} and discountCode.",
    )
    segments: Segments | None = Field(default=None, description="Who gets it: any of these.")
    excludeSegments: Segments | None = Field(  # noqa: N815 (the name that callers know)
        default=None, description="Who does not, whatever else they are in."
    )
    all: bool | None = Field(default=None, description="Everybody who agreed to marketing.")
    sendAt: Moment = Field(  # noqa: N815
        default=None,
        description='When: ISO 8601, unix seconds or "now"; now unless given.',
    )
    sender: str = Field(default="marketing", description=f"One of: {', '.join(PRESETS)}.")
    test: bool = Field(default=False, description="Send it to yourself alone.")


class CampaignId(Input):
    """Which campaign."""

    id: Id = Field(description="The campaign's id.")

    @model_validator(mode="before")
    @classmethod
    def check_id(cls, given: Any) -> Any:
        """Ask for the id in the words that callers know."""
        named: Any = cast("Fields", given) if isinstance(given, dict) else {"id": True}
        if not named.get("id"):
            raise PydanticCustomError(TOLD_MISSING, ID_REQUIRED)
        return cast("Any", given)


class UpdateCampaign(CampaignId):
    """What to change; what is not given stays."""

    name: Text | None = Field(default=None, description="Another name.")
    subject: Text | None = Field(default=None, description="Another subject.")
    preheader: str | None = Field(
        default=None, max_length=MAX_TEXT, description="What is shown after the subject."
    )
    template: str | None = Field(default=None, max_length=100, description="Another template.")
    data: Data | None = Field(
        default=None, description="What templates show, in place of all that was there."
    )
    segments: Segments | None = Field(default=None, description="Who gets it: any of these.")
    excludeSegments: Segments | None = Field(  # noqa: N815
        default=None, description="Who does not, whatever else they are in."
    )
    all: bool | None = Field(default=None, description="Everybody who agreed to marketing.")
    sendAt: Moment = Field(  # noqa: N815
        default=None, description="Another time: ISO 8601 or unix seconds."
    )
    sender: str | None = Field(default=None, description=f"One of: {', '.join(PRESETS)}.")


Campaign = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "A campaign as it is kept; `delivery` counts messages by what became "
            "of them.",
            "properties": {
                "id": {"type": "string", "description": "Its id."},
                "settings": {"type": "object", "description": "What was asked for."},
                "type": {"type": "string", "description": "`email` or `push`."},
                "status": {
                    "type": "string",
                    "description": "`pending`, `processing`, `sent` or `failed`.",
                },
                "sendAt": {"type": "integer", "description": "When it is due, in unix seconds."},
            },
            "required": ["id"],
        }
    ),
]


class Campaigns(Output):
    """One campaign, or those that were found."""

    success: bool = Field(description="Always true.")
    campaign: Campaign | None = Field(default=None, description="With `id`.")
    campaigns: list[Campaign] | None = Field(
        default=None, description="Without `id`: the earliest first."
    )
    count: int | None = Field(default=None, description="How many are listed.")


class CreatedCampaign(Output):
    """What was stored, and whether it is being sent."""

    success: bool = Field(description="Always true.")
    id: str = Field(description="The campaign's id.")
    status: str = Field(description="`pending` until it is due, `processing` while it is sent.")
    sendAt: int = Field(description="When it is due, in unix seconds.")  # noqa: N815
    providers: dict[str, Any] = Field(description="Who delivers it.")


class UpdatedCampaign(Output):
    """The campaign after the change."""

    success: bool = Field(description="Always true.")
    campaign: Campaign = Field(description="The campaign after the change.")


class DeletedCampaign(Output):
    """What was deleted."""

    success: bool = Field(description="Always true.")
    deleted: str = Field(description="The id of the campaign.")


@family.tool(
    "list_campaigns",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List marketing campaigns",
    route=Route(CAMPAIGN),
    example={"status": "pending"},
)
async def list_campaigns(ctx: Context[BackendWorld], args: ListCampaigns) -> Campaigns:
    """List campaigns by the time they are due, or show one.

    `processing` means that messages are being sent; a campaign's `delivery` then says how many came
    to what.
    """
    campaigns = ctx.world.marketing.campaigns
    if args.id is not None:
        found = await campaigns.get(args.id)
        return Campaigns(success=True, campaign=_campaign(args.id, found))
    wanted = CampaignFilter(
        status=args.status,
        type=args.type,
        start=_seconds("start", args.start),
        end=_seconds("end", args.end),
        limit=args.limit,
    )
    listed = [_campaign(*one) for one in await campaigns.list(wanted)]
    return Campaigns(success=True, campaigns=listed, count=len(listed))


@family.tool(
    "create_campaign",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.DOCUMENTS, Target.TABLES],
    open_world=True,
    title="Create a marketing campaign",
    route=Route(CAMPAIGN, "POST"),
    example={
        "name": "Spring sale",
        "subject": "Everything is 15 % off",
        "segments": ["subscription_free"],
        "sendAt": "2030-03-01T09:00:00Z",
    },
)
async def create_campaign(ctx: Context[BackendWorld], args: CreateCampaign) -> CreatedCampaign:
    """Create a campaign by mail or push, to segments of users or to everybody who agreed.

    It is sent when it is due: at once unless `sendAt` is later. Sending goes on in the background,
    and `list_campaigns` tells how far it has come. Nobody gets a message twice, and nobody who
    revoked consent gets one.
    """
    marketing = ctx.world.marketing
    now = marketing.clock()
    due = _read(read_due, "sendAt", args.sendAt, now) if args.sendAt not in (None, "") else now
    settings = _kept(args.model_dump(include={*SETTINGS}))
    if args.test:
        settings["test"] = await marketing.tester(args.type, ctx.principal)
    check_settings(settings)
    marketing.check_content(settings)
    id, is_due = push_id(), due <= now
    campaign = new_campaign(settings, type=args.type, send_at=due, now=now)
    if is_due:
        campaign = await marketing.begin(ctx.tx, id, campaign)
    await marketing.campaigns.create(ctx.tx, id, campaign)
    return CreatedCampaign(
        success=True,
        id=id,
        status=campaign["status"],
        sendAt=campaign["sendAt"],
        providers={marketing.provider(args.type): {"status": campaign["status"]}},
    )


@family.tool(
    "update_campaign",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.DOCUMENTS],
    title="Update a pending campaign",
    route=Route(CAMPAIGN, "PUT"),
    example={"id": "_recurring-newsletter", "subject": "News of {date.month}"},
)
async def update_campaign(ctx: Context[BackendWorld], args: UpdateCampaign) -> UpdatedCampaign:
    """Change a campaign that is not being sent yet; what is not given stays as it is."""
    marketing = ctx.world.marketing
    now = marketing.clock()
    given = _kept(args.model_dump(include={*SETTINGS}))
    due = _read(read_due, "sendAt", args.sendAt, now) if args.sendAt is not None else None

    def edit(campaign: Fields) -> Fields:
        if not given and due is None:  # nothing to change is no change
            return campaign
        settings = {**campaign.get("settings", {}), **given}
        check_settings(settings)
        marketing.check_content(settings)
        send_at = campaign["sendAt"] if due is None else int(due.timestamp())
        return changed(campaign, now, settings=settings, sendAt=send_at)

    edited = await marketing.campaigns.edit(ctx.tx, args.id, edit)
    return UpdatedCampaign(success=True, campaign=_campaign(args.id, edited))


@family.tool(
    "delete_campaign",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.DOCUMENTS],
    title="Delete a pending campaign",
    route=Route(CAMPAIGN, "DELETE"),
    example={"id": "_recurring-newsletter"},
)
async def delete_campaign(ctx: Context[BackendWorld], args: CampaignId) -> DeletedCampaign:
    """Delete a campaign that is not being sent yet; one that recurs never comes again."""
    await ctx.world.marketing.campaigns.delete(ctx.tx, args.id)
    return DeletedCampaign(success=True, deleted=args.id)


def check_settings(settings: Fields) -> None:
    """Refuse a campaign that would reach nobody it names, or everybody by accident."""
    for field in ("segments", "excludeSegments"):
        if unknown := [one for one in settings.get(field, ()) if one not in SEGMENTS]:
            raise _problem(field, f"there is no segment {unknown[0]!r}. Valid options: {_SEGMENTS}")
    for field in ("name", "subject", "preheader"):
        if CONTROL.search(str(settings.get(field) or "")):
            raise _problem(field, "must be one line, without control characters")
    if not settings.get("segments") and not settings.get("all") and not settings.get("test"):
        raise _problem("segments", NOBODY)
    if settings.get("sender") not in PRESETS:
        options = ", ".join(PRESETS)
        raise _problem("sender", f"there is no sender of this name. Valid options: {options}")


_SEGMENTS = ", ".join(SEGMENTS)


def _problem(field: str, message: str) -> InvalidArguments:
    return InvalidArguments([Problem(field, "value", f"{field}: {message}")])


def _kept(given: Fields) -> Fields:
    return {name: value for name, value in given.items() if value is not None}


def _read(
    read: Callable[[object, datetime], datetime], field: str, value: Moment, now: datetime
) -> datetime:
    try:
        return read(value, now)
    except BadDate as problem:
        raise InvalidArguments([Problem(field, "format", f"{field} {problem}")]) from None


def _seconds(field: str, value: Moment) -> int | None:
    if value is None:
        return None
    return int(_read(read_date, field, value, datetime.now(UTC)).timestamp())


def _campaign(id: str, fields: Fields) -> Campaign:
    return {**fields, "id": id}
