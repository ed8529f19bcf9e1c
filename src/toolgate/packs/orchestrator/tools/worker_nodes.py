"""What a node itself calls, with its own key: it reports, and fetches its configuration."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.nodes.store import AvailabilityKind, Available, NodeChange
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, Line
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.secret_values import redacted
from toolgate.packs.orchestrator.tools.node_fields import (
    MAX_METADATA_BYTES,
    NOT_FOUND,
    SLUG,
    JsonObject,
    Slug,
    WebUrl,
    check_object,
    check_secret,
    is_refresh_requested,
)
from toolgate.packs.orchestrator.unseen_text import without_unseen
from toolgate.packs.orchestrator.vocabulary import AckStatus, AvailabilityStatus, NodeStatus
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("worker_nodes", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
MAX_SNAPSHOT_BYTES = 256 * 1024
MAX_AVAILABLE = 1000
MAX_ERROR = 2000
VERSION_CHARACTERS = 26
"""Of a ULID."""
EXAMPLE = {"node_slug": "worker-01"}
OwnSlug = Annotated[Slug, Scoped("node")]


def _config_version(value: object) -> object:
    if isinstance(value, str) and len(value) != VERSION_CHARACTERS:
        raise PydanticCustomError(
            TOLD_FORMAT, "config_version must be the one that worker_node.get_config gave"
        )
    return value


ConfigVersion = Annotated[
    str,
    Field(min_length=VERSION_CHARACTERS, max_length=VERSION_CHARACTERS),
    BeforeValidator(_config_version),
]


class Self(Input):
    """Which node."""

    node_slug: OwnSlug | None = Field(
        default=None, description="The node's slug; with a node's key, its own."
    )


class Registration(Self):
    """What a node says of itself at its start; what is left out stays as it is."""

    display_name: Line | None = Field(default=None, description="Its name for people.")
    worker_api_target_url: WebUrl | None = Field(
        default=None, description="Where its own API is; user and password are not kept."
    )
    metadata: JsonObject | None = Field(
        default=None, description="Labels and other facts about it, at most 16 KiB of JSON."
    )


class Image(Input):
    """An image on this node."""

    image_ref: Line = Field(description="The image, such as docker.io/library/python:3.12.")
    status: AvailabilityStatus = Field(description="Whether it can be used.")


class Model(Input):
    """A model on this node."""

    model: Line = Field(description="The model's name, such as llama3.")
    version: Line | None = Field(default=None, description="Its version.")
    status: AvailabilityStatus = Field(description="Whether it can be used.")


class Report(Self):
    """All that a node has and can do."""

    capabilities: JsonObject = Field(
        description="What the node can do: cores, memory, runtime; at most 256 KiB of JSON."
    )
    images: list[Image] = Field(
        default=[], max_length=MAX_AVAILABLE, description="Every image, at most 1000."
    )
    models: list[Model] = Field(
        default=[], max_length=MAX_AVAILABLE, description="Every model, at most 1000."
    )


class Acknowledgement(Self):
    """What became of a configuration."""

    config_version: ConfigVersion = Field(description="The version that was fetched.")
    status: AckStatus = Field(description="Whether it is in use now.")
    error: Annotated[str, Field(max_length=MAX_ERROR)] | None = Field(
        default=None, description="What went wrong; secrets in it are not kept."
    )


class Standing(Output):
    """What a node has to know."""

    node_slug: str = Field(description="The node.")
    status: NodeStatus = Field(description="How it is seen here.")
    config_version: str = Field(description="The version of its configuration.")
    refresh_config_requested: bool = Field(
        description="Whether the node should fetch its configuration and acknowledge it."
    )
    heartbeat_seconds: float = Field(description="How often it should send a heartbeat.")


class Config(Standing):
    """A node's configuration."""

    config: dict[str, Any] = Field(description="The configuration, as an operator wrote it.")


@family.tool(
    "worker_node.register",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Register this node",
    idempotent=True,
    not_found=NOT_FOUND,
    example=EXAMPLE,
)
async def register(ctx: Ctx, args: Registration) -> Standing:
    """Say that this node has started, and what it is.

    An operator made the node and its key before.
    """
    await check_object(ctx.principal.id, "metadata", args.metadata, MAX_METADATA_BYTES)
    _check_name(ctx, args.display_name)
    change = NodeChange(
        display_name=args.display_name,
        worker_api_target_url=args.worker_api_target_url,
        metadata=args.metadata,
    )
    return Standing(**_standing(ctx, await ctx.world.nodes.see(ctx.tx, _slug(args), change)))


@family.tool(
    "worker_node.heartbeat",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Send a heartbeat",
    idempotent=True,
    not_found=NOT_FOUND,
    example=EXAMPLE,
)
async def heartbeat(ctx: Ctx, args: Self) -> Standing:
    """Say that this node is still there; the answer says whether to fetch the configuration."""
    return Standing(**_standing(ctx, await ctx.world.nodes.see(ctx.tx, _slug(args))))


@family.tool(
    "worker_node.report_capabilities",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Report what this node can do",
    idempotent=True,
    not_found=NOT_FOUND,
    example={**EXAMPLE, "capabilities": {"cpu_cores": 8, "memory_mb": 16384}},
)
async def report(ctx: Ctx, args: Report) -> Standing:
    """Replace what this node reported before: what it can do, and which images and models it has.

    What is left out of a list is no longer there.
    """
    await check_object(ctx.principal.id, "capabilities", args.capabilities, MAX_SNAPSHOT_BYTES)
    images = [Available("image", one.image_ref, "", one.status) for one in args.images]
    models = [Available("model", one.model, one.version or "", one.status) for one in args.models]
    for field, listed in (("images", images), ("models", models)):
        size = sum(len(one.name) + len(one.version) for one in listed)
        await examine(ctx.principal.id, size, partial(_check_listed, field, listed))
    slug, available = _slug(args), [*images, *models]
    row = await ctx.world.nodes.report(ctx.tx, slug, args.capabilities, available)
    return Standing(**_standing(ctx, row))


@family.tool(
    "worker_node.get_config",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get this node's configuration",
    not_found=NOT_FOUND,
    example=EXAMPLE,
)
async def get_config(ctx: Ctx, args: Self) -> Config:
    """Fetch this node's configuration.

    Say what became of it with `worker_node.acknowledge_config`.
    """
    row = await ctx.world.nodes.get(_slug(args))
    standing = _standing(ctx, row)
    return Config(**standing, config=orjson.loads(row["config"]) if row else {})


@family.tool(
    "worker_node.acknowledge_config",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Acknowledge this node's configuration",
    idempotent=True,
    not_found=NOT_FOUND,
    example={**EXAMPLE, "config_version": "01KE6P4YM00000000000000000", "status": "applied"},
)
async def acknowledge(ctx: Ctx, args: Acknowledgement) -> Standing:
    """Say what became of the configuration that this node fetched.

    Of a version that is no longer the newest it is refused: fetch the newest.
    """
    error = None if args.error is None else _kept(args.error)
    version, status = args.config_version, args.status
    row = await ctx.world.nodes.acknowledge(ctx.tx, _slug(args), version, status, error)
    return Standing(**_standing(ctx, row))


def _slug(args: Self) -> str:
    """The node that is meant; the gate filled it in for a node's own key."""
    if args.node_slug is None:
        message = "node_slug is required for a caller that is not a node"
        raise InvalidArguments([Problem("node_slug", "missing", message)])
    if not SLUG.fullmatch(args.node_slug):
        raise NotFound(NOT_FOUND)
    return args.node_slug


def _standing(ctx: Ctx, row: Row | None) -> dict[str, Any]:
    if row is None:
        raise NotFound(NOT_FOUND)
    return {
        "node_slug": row["slug"],
        "status": ctx.world.liveness.status_of(row),
        "config_version": row["config_version"],
        "refresh_config_requested": is_refresh_requested(row),
        "heartbeat_seconds": ctx.world.liveness.heartbeat_seconds,
    }


def _check_name(ctx: Ctx, name: str | None) -> None:
    """Raise where agents would read a node's name as an order, or find a secret in it."""
    check_secret("display_name", name)
    if name is not None and (found := ctx.world.content_audit.examine(name)):
        message = f"display_name is refused ({found.category}: {found.text!r}). Choose another"
        raise InvalidArguments([Problem("display_name", "value", message)])


def _check_listed(field: str, listed: Sequence[Available]) -> None:
    """Raise where something is named twice, or is a secret."""
    seen: set[tuple[AvailabilityKind, str, str]] = set()
    for at, one in enumerate(listed):
        key = (one.kind, one.name, one.version)
        if key in seen:
            message = f"{field}[{at}] names {one.name!r} a second time"
            raise InvalidArguments([Problem(f"{field}[{at}]", "value", message)])
        seen.add(key)
    check_secret(field, [text for one in listed for text in (one.name, one.version)])


def _kept(error: str) -> str:
    """An error as it is stored: without secrets, and without what nobody sees."""
    return without_unseen(redacted(error))
