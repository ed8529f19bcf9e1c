"""Users."""

from typing import Any

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict, NotFound, Unavailable
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, NoArguments, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.sync import NAME
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.users import USERS, complete_record
from toolgate.workflows.declarations import RunStatus

family = Family("users", BACKEND)
NO_USER = (
    "These credentials belong to no user. Sign in, or make a key with "
    "`toolgate keys create --role user --user UID`."
)


class User(Output):
    """Who is calling."""

    user: dict[str, Any] = Field(
        description="The user's record: auth, subscription, roles, flags, affiliate, metadata, "
        "activity, api, usage, personal, oauth2, attribution, consent, and what the application "
        "adds. What is not stored has its default. Secrets are left out."
    )


@family.tool(
    "get_user",
    role=Role.USER,
    effect=Effect.READ,
    title="Get authenticated user info",
    route=Route(f"{ROUTES}/user"),
)
async def get_user(ctx: Context[BackendWorld], args: NoArguments) -> User:
    """Get the record of the user you act for.

    A key that belongs to no user has none: make one with `toolgate keys create --user UID`.
    """
    uid = ctx.principal.user_id
    if uid is None:
        raise NotFound(NO_USER)
    return User(user=complete_record(uid, await ctx.world.documents.get(USERS, uid)))


class Synchronised(Output):
    """What was done."""

    processed: int = Field(description="How many users of the directory have a whole record now.")


@family.tool(
    "sync_users",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Sync user data across systems",
    open_world=True,
    writes=[Target.DOCUMENTS, Target.OUTSIDE],
    slow=True,
    route=Route(f"{ROUTES}/admin/users/sync", method="POST"),
)
async def sync_users(ctx: Context[BackendWorld], args: NoArguments) -> Synchronised:
    """Give every user of the directory a whole record: defaults under what is there.

    Nothing that is stored changes; anonymous users are left out. One runs at a time, in the
    background: calling again joins it, and after a crash it goes on from where it was.
    """
    workflows = ctx.world.workflows
    id = await workflows.start_now(NAME, call=ctx.tx.call)
    record = await workflows.wait(id, ctx.report)
    if record.status is RunStatus.CANCELLED:
        raise Conflict("The synchronisation was cancelled. Call again to go on.")
    if record.status is not RunStatus.SUCCEEDED or record.result is None:
        raise Unavailable(record.error or "The synchronisation failed. Call again to go on.")
    return Synchronised(processed=record.result["processed"])
