"""How many there are of what."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD
from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.stats.counting import told
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import DocumentTransaction, Fields, Set
from toolgate.ports.users import timestamp_record

family = Family("operations", BACKEND)

META, STATS = "meta", "stats"
TAG = "admin/stats"
ONLINE = (("gatherings", "online"), ("sessions", "app"), ("sessions", "online"))
"""Documents in which applications keep who is online: a field for each session."""
NO_SESSION = "metadata"
STORED = ("backups", "syncUsers", "metadata")
"""What others write into the document `meta/stats`."""


class Parts(Input):
    """What to count again."""

    notifications: bool = Field(default=False, description="Tokens of push notifications.")
    subscriptions: bool = Field(default=False, description="Subscriptions by plan.")
    users: bool = Field(default=False, description="Users.")
    online: bool = Field(default=False, description="Sessions that are online.")


RULE = (
    "must be true or false, or an object with any of notifications, subscriptions, users and "
    "online, each true or false"
)


def _told_what_to_update(value: Any) -> Any:
    """One sentence for whatever it is, instead of one for each that it is not."""
    named = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for name, one in named.items():
        if name not in Parts.model_fields or not isinstance(one, bool):
            problem = "is not known" if name not in Parts.model_fields else "is not true or false"
            words = {"name": name[:50], "problem": problem, "rule": RULE}
            raise PydanticCustomError(TOLD, "update.{name} {problem}: update {rule}", words)
    if not isinstance(value, bool | dict | Parts | None):
        raise PydanticCustomError(TOLD, "update {rule}", {"rule": RULE})
    return cast("Any", value)


class StatsRequest(Input):
    """Whether to count again."""

    update: Annotated[bool | Parts | None, BeforeValidator(_told_what_to_update)] = Field(
        default=None,
        description="True to count all documents again and to store the numbers in `meta/stats`; "
        "or an object that names what to store. Without it nothing is written.",
    )


class UserStats(Output):
    """Users."""

    total: int = Field(description="How many users there are.")
    online: int = Field(description="How many sessions are online.")


class NotificationStats(Output):
    """Tokens that push notifications go to."""

    total: int = Field(description="How many tokens there are.")


class SubscriptionTotals(Output):
    """Subscriptions of all plans."""

    total: int = Field(description="How many are paid for.")
    exempt: int = Field(description="How many are of admins and VIPs.")


class SubscriptionStats(Output):
    """Subscriptions that are neither cancelled nor past their end."""

    totals: SubscriptionTotals = Field(description="Of all plans.")
    plans: dict[str, dict[str, int]] = Field(
        description="By the product's id: `total`, `monthly`, `annually`, `exempt`, and other "
        "frequencies that there are."
    )


class Stats(Output):
    """The numbers."""

    users: UserStats = Field(description="How many users there are.")
    notifications: NotificationStats = Field(description="How many can be notified.")
    subscriptions: SubscriptionStats = Field(description="How many subscriptions run.")
    brand: str = Field(description="The application's short name.")
    backups: dict[str, Any] = Field(default={}, description="The last backup.")
    syncUsers: dict[str, Any] = Field(  # noqa: N815
        default={}, description="How far users have been synchronised."
    )
    metadata: dict[str, Any] = Field(default={}, description="When numbers were last stored.")


def _writes(args: StatsRequest) -> bool:
    return any(_chosen(args.update).values())


def _chosen(update: bool | Parts | None) -> dict[str, bool]:
    if isinstance(update, Parts):
        return update.model_dump()
    return dict.fromkeys(Parts.model_fields, update is True)


@family.tool(
    "get_stats",
    role=Role.ADMIN,
    effect=Effect.READ,
    writes=[Target.DOCUMENTS, Target.TABLES],
    writes_if=_writes,
    title="Get system statistics",
    route=Route(f"{ROUTES}/admin/stats"),
)
async def get_stats(ctx: Context[BackendWorld], args: StatsRequest) -> Stats:
    """Get how many users, subscriptions and notification tokens there are, exactly, at this moment.

    With `update`, documents are counted again, and the numbers are stored: this is a write. Where
    documents are in Firestore, numbers are those of the last update.
    """
    counters, store = ctx.world.counters, ctx.world.documents
    if not _writes(args):
        counts = await counters.now()
        stored = await store.get(META, STATS) or {}
        live = told(counts) if counts is not None else {}
        return _answer(ctx, _over(told({}), stored) | live, stored, await _online(ctx))
    counts = await counters.recount(keep=not ctx.dry_run)
    online, numbers = await _online(ctx), told(counts)
    chosen = _chosen(args.update)

    async def keep(documents: DocumentTransaction) -> Fields:
        stored = _with_numbers(await documents.get(META, STATS) or {}, numbers, online, chosen)
        stored["brand"] = ctx.world.brand.name
        documents.write(Set(META, STATS, stored))
        return stored

    return _answer(ctx, numbers, await store.transact(ctx.tx, keep), online)


async def _online(ctx: Context[BackendWorld]) -> int:
    found = await ctx.world.documents.get_many(ONLINE)
    return sum(len(one.keys() - {NO_SESSION}) for one in found if one)


def _with_numbers(
    stored: Fields, numbers: Mapping[str, Any], online: int, chosen: Mapping[str, bool]
) -> Fields:
    """The stored document with the numbers that were asked for."""
    users: Fields = dict(_map(stored.get("users")))
    if chosen["users"]:
        users["total"] = numbers["users"]["total"]
    if chosen["online"]:
        users["online"] = online
    others = {name: numbers[name] for name in ("notifications", "subscriptions") if chosen[name]}
    about = {**_map(stored.get("metadata")), "updated": timestamp_record(), "tag": TAG}
    return {**stored, **others, "users": users, "metadata": about}


def _over(usual: Fields, stored: Fields) -> Fields:
    """What is stored, where it has the form of the numbers."""
    total = _map(stored.get("users")).get("total")
    tokens = _map(stored.get("notifications")).get("total")
    subscriptions = _map(stored.get("subscriptions"))
    return {
        "users": {"total": total} if isinstance(total, int) else usual["users"],
        "notifications": {"total": tokens} if isinstance(tokens, int) else usual["notifications"],
        "subscriptions": subscriptions
        if {"totals", "plans"} <= subscriptions.keys()
        else usual["subscriptions"],
    }


def _answer(
    ctx: Context[BackendWorld], numbers: Mapping[str, Any], stored: Fields, online: int
) -> Stats:
    beside = {name: stored[name] for name in STORED if isinstance(stored.get(name), dict)}
    users = {**numbers["users"], "online": online}
    brand = ctx.world.brand.name
    return Stats.model_validate({**numbers, "users": users, "brand": brand, **beside})


def _map(value: Any) -> Fields:
    return cast(Fields, value) if isinstance(value, dict) else {}
