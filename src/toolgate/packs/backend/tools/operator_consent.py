"""What operators do about consent: note that somebody gave it again."""

from typing import Annotated

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.backend.mail.addresses import BadAddress, checked_address
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import Create
from toolgate.ports.push_ids import push_id
from toolgate.ports.users import timestamp_record

family = Family("operator_consent", BACKEND)

COLLECTION = "marketing-consents"
"""Why somebody may be mailed again: one document each time."""
SOURCE = "operator"
MAX_EMAIL, MAX_REASON = 320, 500
NOT_CONFIRMED = (
    "confirmed must be true: only the person can give consent again, and reason says how they did"
)


class Restoring(Input):
    """Whose consent, and how they gave it."""

    email: str = Field(max_length=MAX_EMAIL, description="The address.")
    reason: Annotated[str, Field(min_length=3, max_length=MAX_REASON)] = Field(
        description="How the person agreed again, such as `wrote to support on 3 May`; it is kept."
    )
    confirmed: bool = Field(description="Must be true: the person has agreed to marketing again.")


class Restored(Output):
    """What was noted."""

    success: bool = Field(description="Always true.")
    restored: bool = Field(description="False where consent was not revoked: nothing changed.")
    email: str = Field(description="The address, in lower case.")
    users: int = Field(description="How many users have it; their records say `granted` now.")
    record: str | None = Field(description="Path of the document that keeps the reason.")


@family.tool(
    "operator.consent.restore",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    idempotent=True,
    writes=[Target.TABLES, Target.DOCUMENTS],
    title="Note that somebody agreed to marketing again",
    example={
        "email": "grace.hopper@example.com",
        "reason": "wrote to support on 3 May",
        "confirmed": True,
    },
)
async def restore_consent(ctx: Context[BackendWorld], args: Restoring) -> Restored:
    """Let somebody who unsubscribed or was deleted be sent marketing again, because they asked.

    The reason is kept with the time and with who noted it. The contact is not added to the list;
    create_contact does that, which refuses an address until then.
    """
    email = _address(args)
    consent = ctx.world.consent
    if not await consent.wants_none(email):
        return Restored(success=True, restored=False, email=email, users=0, record=None)
    users = await consent.restore(ctx.tx, email, SOURCE)
    id = push_id()
    said = {
        "email": email,
        "reason": args.reason.strip(),
        "by": ctx.principal.id,
        "restored": timestamp_record(),
    }
    await ctx.world.documents.write(ctx.tx, Create(COLLECTION, id, said))
    path = f"{COLLECTION}/{id}"
    return Restored(success=True, restored=True, email=email, users=users, record=path)


def _address(args: Restoring) -> str:
    problems = list[Problem]()
    email = ""
    try:
        email = checked_address(args.email).key
    except BadAddress as problem:
        problems.append(Problem("email", "format", f"email {problem}"))
    if not args.confirmed:
        problems.append(Problem("confirmed", "value", NOT_CONFIRMED))
    if not args.reason.isprintable() or not args.reason.strip():
        problems.append(Problem("reason", "format", "reason must be one line of text"))
    if problems:
        raise InvalidArguments(problems)
    return email
