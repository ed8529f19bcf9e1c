"""Permission tools: may this user do that in this app?"""

from typing import Any, cast

from pydantic import ConfigDict, Field

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output
from toolgate.packs.appdata.pack import APPDATA, DocumentId, Id
from toolgate.packs.appdata.world import AppDataWorld
from toolgate.ports.documents import Fields, Query

ROLE_LEVELS = {"owner": 4, "admin": 3, "moderator": 2, "member": 1}
MAX_ENTRIES = 1000
USERS = "users"

family = Family("permissions", APPDATA)


class AppPermission(Output):
    """What a user may do in one app."""

    model_config = ConfigDict(extra="allow")

    appId: str = Field(description="The app's id.")  # noqa: N815 (the seed's spelling)
    roles: list[str] = Field(description="Roles in the app; the highest counts.")
    features: list[str] = Field(description="Features the user may use.")


class Profile(Output):
    """A user's permissions in every app."""

    user_id: str = Field(description="The user's id.")
    is_admin: bool = Field(description="Whether the user is a global admin.")
    apps: list[str] = Field(description="Apps the user has access to.")
    permissions: list[AppPermission] = Field(description="One entry per app.")


class PermissionQuery(Input):
    """Who, where, and what."""

    user_id: DocumentId = Field(description="The user to check.")
    app_id: Id = Field(description="The app to check access to.")
    permission: Id = Field(
        default="access",
        description="`access`, a role (`owner`, `admin`, `moderator`, `member`), "
        "or the name of a feature.",
    )


class Verdict(Output):
    """Whether it is granted, and on what grounds."""

    user_id: str = Field(description="The user that was checked.")
    app_id: str = Field(description="The app that was checked.")
    permission: str = Field(description="The permission that was checked.")
    granted: bool = Field(description="Whether the user has the permission.")
    roles: list[str] = Field(default=[], description="For `access`: the user's roles in the app.")
    features: list[str] = Field(default=[], description="For `access`: the user's features.")
    user_roles: list[str] = Field(default=[], description="For a role: the user's roles.")
    available_features: list[str] = Field(
        default=[], description="For a feature: the features the user has."
    )
    reason: str = Field(default="", description="Why it is granted or not.")


@family.tool(
    "check_permission",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Check a permission",
    example={"user_id": "abc123", "app_id": "justsplit", "permission": "admin"},
)
async def check_permission(ctx: Context[AppDataWorld], args: PermissionQuery) -> Verdict:
    """Check whether a user has a permission in an app.

    The permission is `access`, a role (owner > admin > moderator > member: a higher one
    satisfies a lower), or a feature's name. Use `list_user_permissions` to see all at once.
    """
    profile = await _profile(ctx, args.user_id)
    return verdict(args, profile)


def verdict(args: PermissionQuery, profile: Profile | None) -> Verdict:
    """Evaluate in the seed's order: user, global admin, app, entry, permission."""
    if profile is None:
        return _verdict(args, False, reason=f"User '{args.user_id}' not found")
    if profile.is_admin:
        return _verdict(args, True, reason="User is a global admin")
    if args.app_id not in profile.apps:
        return _verdict(args, False, reason=f"User does not have access to app '{args.app_id}'")
    entry = next((one for one in profile.permissions if one.appId == args.app_id), None)
    roles = entry.roles if entry else []
    features = entry.features if entry else []
    if args.permission == "access":
        return _verdict(args, True, roles=roles, features=features)
    if args.permission in ROLE_LEVELS:
        return _role_verdict(args, roles)
    return _feature_verdict(args, features)


def _role_verdict(args: PermissionQuery, roles: list[str]) -> Verdict:
    needed = ROLE_LEVELS[args.permission]
    highest = max((ROLE_LEVELS.get(role, 0) for role in roles), default=0)
    reason = f"Role check: requires '{args.permission}' (level {needed})"
    return _verdict(args, highest >= needed, user_roles=roles, reason=reason)


def _feature_verdict(args: PermissionQuery, features: list[str]) -> Verdict:
    granted = args.permission in features
    verdict = "found" if granted else "not found"
    reason = f"Feature check: '{args.permission}' {verdict} in user features"
    return _verdict(args, granted, available_features=features, reason=reason)


def _verdict(args: PermissionQuery, granted: bool, **grounds: Any) -> Verdict:
    return Verdict(
        user_id=args.user_id,
        app_id=args.app_id,
        permission=args.permission,
        granted=granted,
        **grounds,
    )


class UserRef(Input):
    """Which user."""

    user_id: DocumentId = Field(description="The user whose permissions to list.")


@family.tool(
    "list_user_permissions",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List a user's permissions",
    example={"user_id": "abc123"},
)
async def list_user_permissions(ctx: Context[AppDataWorld], args: UserRef) -> Profile:
    """List all permissions of a user: global admin or not, apps, and roles and features in each.

    Use `check_permission` for a yes or no on one permission.
    """
    profile = await _profile(ctx, args.user_id)
    if profile is None:
        raise NotFound(f"Document {args.user_id} not found in {USERS}")
    return profile


async def _profile(ctx: Context[AppDataWorld], user_id: str) -> Profile | None:
    """A user's record together with the entries below it (docs/decisions/0007)."""
    if USERS not in ctx.world.collections.by_name:
        raise NotFound(
            f"Permissions are read from collection '{USERS}', which this server does not have",
            available_collections=list(ctx.world.collections.by_name),
        )
    record = await ctx.world.documents.get(USERS, user_id)
    if record is None:
        return None
    entries = Query(f"{USERS}/{user_id}/permissions", limit=MAX_ENTRIES)
    below = await ctx.world.documents.query(entries)
    granted = [_entry({"appId": one.id, **one.fields}) for one in below]
    app_ids = {one.appId for one in granted}
    own = [_entry(one) for one in _objects(record.get("permissions"))]
    own = [one for one in own if one.appId not in app_ids]
    apps = _strings(record.get("apps"))
    apps += [one.appId for one in granted if one.appId not in apps]
    granted.sort(key=lambda one: apps.index(one.appId))
    return Profile(
        user_id=user_id,
        is_admin=record.get("isAdmin") is True,
        apps=apps,
        permissions=own + granted,
    )


def _entry(fields: Fields) -> AppPermission:
    read_fields = {
        "appId": str(fields.get("appId", "")),
        "roles": _strings(fields.get("roles")),
        "features": _strings(fields.get("features")),
    }
    return AppPermission.model_validate(fields | read_fields)


def _objects(value: Any) -> list[Fields]:
    """Records are the application's: what is not an object is not an entry."""
    if not isinstance(value, list):
        return []
    return [cast(Fields, one) for one in cast("list[Any]", value) if isinstance(one, dict)]


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[Any]", value) if isinstance(one, str)]
