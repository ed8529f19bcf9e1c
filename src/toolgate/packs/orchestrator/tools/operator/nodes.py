"""What operators do to nodes: make them with a key, change, drain and delete them."""

from pydantic import Field

from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.nodes.store import MadeNode, NodeChange
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, Line
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.node_fields import (
    MAX_METADATA_BYTES,
    NOT_FOUND,
    JsonObject,
    NewSlug,
    NodeInfo,
    WebUrl,
    check_object,
    check_secret,
    node_fields,
)
from toolgate.packs.orchestrator.tools.operator.lists import Ctx, Removed

family = Family("operator_nodes", ORCHESTRATOR)

MAX_CONFIG_BYTES = 64 * 1024


class ByNode(Input):
    """Which node."""

    node_slug: NewSlug = Field(description="The node's slug: a-z, 0-9 and -.")


class Facts(ByNode):
    """What an operator says of a node; what is left out stays as it is."""

    display_name: Line | None = Field(default=None, description="Its name for people.")
    worker_api_target_url: WebUrl | None = Field(
        default=None, description="Where its own API is; user and password are not kept."
    )
    metadata: JsonObject | None = Field(
        default=None, description="Labels and other facts about it, at most 16 KiB of JSON."
    )
    config: JsonObject | None = Field(
        default=None, description="Its configuration, at most 64 KiB of JSON, without secrets."
    )


class Change(Facts):
    """What is changed."""

    drained: bool | None = Field(
        default=None, description="Whether it is taken out: true drains it, false takes it back."
    )


class NodeWithKey(Output):
    """A node with its key."""

    node: NodeInfo = Field(description="The node.")
    key: str = Field(
        description="The node's key, good for worker_node.* as this node alone; shown only now."
    )


@family.tool(
    "operator.node.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a node",
    example={"node_slug": "worker-02", "display_name": "Local worker 02"},
)
async def create(ctx: Ctx, args: Facts) -> NodeWithKey:
    """Create a node and the key that it reports itself with.

    The key is shown only now; `operator.node.replace_key` makes another.
    """
    made = await ctx.world.nodes.create(ctx.tx, args.node_slug, await _change(ctx, args))
    return _with_key(ctx, made)


@family.tool(
    "operator.node.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Change a node",
    idempotent=True,
    example={"node_slug": "worker-01", "drained": True},
)
async def update(ctx: Ctx, args: Change) -> NodeInfo:
    """Change what is known of a node, drain it, or give it another configuration.

    A configuration is a new version, which the node fetches and acknowledges.
    """
    if not args.model_fields_set - {"node_slug"}:
        message = "something to change must be given, such as drained or config"
        raise InvalidArguments([Problem("arguments", "missing", message)])
    change = await _change(ctx, args, args.drained)
    row = await ctx.world.nodes.change(ctx.tx, args.node_slug, change)
    return NodeInfo(**node_fields(_found(row), ctx.world.liveness))


@family.tool(
    "operator.node.replace_key",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Replace a node's key",
    example={"node_slug": "worker-01"},
)
async def replace_key(ctx: Ctx, args: ByNode) -> NodeWithKey:
    """Make a new key for a node; those it had stop working within a second."""
    made = await ctx.world.nodes.replace_key(ctx.tx, args.node_slug)
    if made is None:
        raise NotFound(NOT_FOUND)
    return _with_key(ctx, made)


@family.tool(
    "operator.node.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a node",
    example={"node_slug": "worker-01"},
)
async def delete(ctx: Ctx, args: ByNode) -> Removed:
    """Delete a node with what it reported; its keys stop working within a second.

    Jobs that run on it become lease_expired: a node of the same slug does not get them.
    """
    _found(await ctx.world.nodes.delete(ctx.tx, args.node_slug))
    return Removed()


async def _change(ctx: Ctx, args: Facts, drained: bool | None = None) -> NodeChange:
    await check_object(ctx.principal.id, "metadata", args.metadata, MAX_METADATA_BYTES)
    await check_object(ctx.principal.id, "config", args.config, MAX_CONFIG_BYTES)
    check_secret("display_name", args.display_name)
    return NodeChange(
        display_name=args.display_name,
        worker_api_target_url=args.worker_api_target_url,
        metadata=args.metadata,
        drained=drained,
        config=args.config,
    )


def _found(row: Row | None) -> Row:
    if row is None:
        raise NotFound(NOT_FOUND)
    return row


def _with_key(ctx: Ctx, made: MadeNode) -> NodeWithKey:
    return NodeWithKey(node=NodeInfo(**node_fields(made.row, ctx.world.liveness)), key=made.key)
