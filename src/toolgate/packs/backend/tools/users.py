"""Users."""

from typing import Any

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, NoArguments, Output, Route
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.users import USERS, complete_record

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
