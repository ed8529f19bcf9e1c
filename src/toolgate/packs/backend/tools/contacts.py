"""Marketing contacts."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.marketing.addresses import name_in
from toolgate.packs.backend.marketing.contacts import Contact
from toolgate.packs.backend.marketing.validation import BadAddress, Validation, parsed
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.world import BackendWorld

family = Family("marketing", BACKEND)

MAX_EMAIL, MAX_NAME, MAX_TAGS = 320, 200, 50
LIST = "list"


def _line(value: str, info: ValidationInfo) -> str:
    if not value.isprintable():
        told = {"field": info.field_name}
        raise PydanticCustomError(TOLD_FORMAT, "{field} must be one line of text", told)
    return value.strip()


Email = Annotated[str, Field(max_length=MAX_EMAIL)]
Line = Annotated[str, Field(max_length=MAX_NAME), AfterValidator(_line)]


class NewContact(Input):
    """Whom to add."""

    email: Email = Field(description="The address; letters count in lower case.")
    firstName: Line | None = Field(default=None, description="First name; else read out of it.")  # noqa: N815
    lastName: Line | None = Field(default=None, description="Last name.")  # noqa: N815
    source: Line | None = Field(default=None, description="Where the contact comes from.")
    tags: Annotated[list[Line], Field(max_length=MAX_TAGS)] = Field(
        default=[], description=f"Tags, {MAX_TAGS} at most."
    )
    skipValidation: bool = Field(  # noqa: N815
        default=False, description="Check nothing of the address but its format."
    )


class OldContact(Input):
    """Whom to remove."""

    email: Email = Field(description="The address.")


class AddressValidation(Output):
    """What the checks said of an address."""

    valid: bool = Field(description="Whether it passed those that refuse.")
    checks: dict[str, dict[str, Any]] = Field(
        description="Each check that was made: format, disposable, corporate, localPart, typo and, "
        "where settings switch them on, dns and mailbox. A typo has a `suggestion` and refuses "
        "nothing."
    )


class Name(Output):
    """A name that was read out of an address."""

    firstName: str = Field(description="First name.")  # noqa: N815
    lastName: str | None = Field(description="Last name, null where there is none.")  # noqa: N815


Providers = Annotated[
    dict[str, dict[str, Any]],
    Field(
        description="What became of it: `list`, the embedded one, and `sendgrid` where it is set "
        "up. Each has `success`, and `error` where it failed; it is tried again every hour."
    ),
]


class AddedContact(Output):
    """What became of a new contact."""

    success: bool = Field(description="Whether every provider took it.")
    providers: Providers
    validation: AddressValidation = Field(description="What the checks said of the address.")
    nameInferred: Name | None = Field(  # noqa: N815
        description="The name that was read out of the address, null where one was given or none "
        "could be read."
    )


class RemovedContact(Output):
    """What became of a removed contact."""

    success: bool = Field(description="Whether every provider took it.")
    providers: Providers


@family.tool(
    "create_contact",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Add a marketing contact",
    writes=[Target.OUTSIDE, Target.TABLES],
    open_world=True,
    route=Route(f"{ROUTES}/marketing/contact", method="POST"),
    example={"email": "grace.hopper@example.com", "source": "website"},
)
async def create_contact(ctx: Context[BackendWorld], args: NewContact) -> AddedContact:
    """Add a marketing contact, or change one that is there.

    The address is checked first: format, disposable domains, domains of companies and social
    media, names that no person has, and misspelled domains, which are only pointed out. Nobody who
    revoked consent is added again.
    """
    world = ctx.world
    validation = await _validated(world, args.email, format_only=args.skipValidation)
    email = str(validation.address)
    if not await world.consent.allows(args.email):
        raise _refused(f"Marketing consent was revoked: {email}")
    name = None if args.firstName or args.lastName else name_in(validation.address)
    contact = Contact(
        email=email,
        first_name=args.firstName or (name.first if name else None),
        last_name=args.lastName or (name.last if name else None),
        source=args.source,
        tags=args.tags,
    )
    stored, told = await world.contacts.add(ctx.tx.call, contact)
    providers = {LIST: {"success": True, "created": stored.changed}}
    if told is not None and world.contacts.provider is not None:
        providers[world.contacts.provider.name] = told
        if told["success"]:
            await world.contacts.list.settle(ctx.tx, email, stored.updated_at)
    return AddedContact(
        success=all(one["success"] for one in providers.values()),
        providers=providers,
        validation=AddressValidation(valid=True, checks=validation.checks),
        nameInferred=Name(firstName=name.first, lastName=name.last) if name else None,
    )


@family.tool(
    "delete_contact",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    title="Remove a marketing contact",
    writes=[Target.OUTSIDE, Target.TABLES, Target.DOCUMENTS],
    open_world=True,
    route=Route(f"{ROUTES}/marketing/contact", method="DELETE"),
    example={"email": "alan.turing@example.com"},
)
async def delete_contact(ctx: Context[BackendWorld], args: OldContact) -> RemovedContact:
    """Remove a marketing contact and revoke the consent of its address.

    The records of users with this address say so, and campaigns that run heed it from now on. An
    address that is no contact is revoked all the same.
    """
    world = ctx.world
    try:
        email = str(parsed(args.email))
    except BadAddress as problem:
        raise _refused(str(problem)) from None
    stored, told = await world.contacts.remove(ctx.tx.call, email)
    providers = {LIST: {"success": True, "removed": stored.changed}}
    if told is not None and world.contacts.provider is not None:
        providers[world.contacts.provider.name] = told
        if told["success"]:
            await world.contacts.list.settle(ctx.tx, email, stored.updated_at)
    return RemovedContact(
        success=all(one["success"] for one in providers.values()), providers=providers
    )


async def _validated(world: BackendWorld, email: str, *, format_only: bool) -> Validation:
    try:
        return await world.validator.check(email, format_only=format_only)
    except BadAddress as problem:
        raise _refused(str(problem)) from None


def _refused(message: str) -> InvalidArguments:
    return InvalidArguments([Problem("email", "value", message)])
