"""Nodes: which there are, how they are, and a new configuration for one."""

from typing import Any

import orjson
from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import Forbidden, NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.node_fields import (
    NOT_FOUND,
    SLUG,
    NodeInfo,
    Slug,
    node_fields,
)
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.vocabulary import AvailabilityStatus
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("nodes", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
LISTING = ("node.list",)


class ByNode(Input):
    """Which node."""

    node_slug: Slug = Field(description="The node's slug, such as worker-01.")


class AvailableImage(Output):
    """An image on a node."""

    image_ref: str = Field(description="The image.")
    status: AvailabilityStatus = Field(description="Whether it can be used there.")
    reported_at: str = Field(description="When the node said so, ISO 8601.")


class AvailableModel(Output):
    """A model on a node."""

    model: str = Field(description="The model's name.")
    version: str | None = Field(description="Its version, if the node named one.")
    status: AvailabilityStatus = Field(description="Whether it can be used there.")
    reported_at: str = Field(description="When the node said so, ISO 8601.")


class Node(NodeInfo):
    """A node with all that it reported last."""

    capabilities: dict[str, Any] | None = Field(
        description="What the node can do, as it reported it; null before it did."
    )
    images: list[AvailableImage] = Field(description="The images it reported.")
    models: list[AvailableModel] = Field(description="The models it reported.")


class NodeList(Output):
    """A page of nodes."""

    entries: list[NodeInfo] = Field(description="The nodes, by slug.")
    next_cursor: NextCursor = ""


class Refreshed(Output):
    """A node that will fetch its configuration."""

    node: NodeInfo = Field(description="The node, with the new version.")
    refresh_config_requested: bool = Field(description="Always true.")


@family.tool("node.list", role=Role.ADMIN, effect=Effect.READ, title="List nodes")
async def list_(ctx: Ctx, args: Paged) -> NodeList:
    """List the nodes by slug, page by page, without what they can do."""
    after = key_before(ctx.world, LISTING, args.cursor)
    page = await ctx.world.nodes.page(after, args.limit)
    entries = [NodeInfo(**node_fields(row, ctx.world.liveness)) for row in page.rows]
    last = [entries[-1].node_slug] if page.more else None
    return NodeList(entries=entries, **next_cursor(ctx.world, LISTING, last))


@family.tool(
    "node.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a node",
    example={"node_slug": "worker-01"},
)
async def get(ctx: Ctx, args: ByNode) -> Node:
    """Read one node: its status, what it can do, and the images and models it has.

    config_ack_status says what became of the configuration of config_ack_version.
    """
    found = await ctx.world.nodes.whole(args.node_slug) if SLUG.fullmatch(args.node_slug) else None
    if found is None:
        raise NotFound(NOT_FOUND)
    snapshot = found.row["capabilities"]
    images = [_image(one) for one in found.availability if one["kind"] == "image"]
    models = [_model(one) for one in found.availability if one["kind"] == "model"]
    return Node(
        **node_fields(found.row, ctx.world.liveness),
        capabilities=None if snapshot is None else orjson.loads(snapshot),
        images=images,
        models=models,
    )


@family.tool(
    "node.refresh_config",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Refresh a node's configuration",
    idempotent=True,
    example={"node_slug": "worker-01"},
)
async def refresh(ctx: Ctx, args: ByNode) -> Refreshed:
    """Let a node fetch its configuration again, under a new version.

    The node learns of it with its next heartbeat; then `node.get` shows whether it was applied.
    """
    if ctx.principal.bound:
        message = "A key that is bound to a project, task or job steers no node: they work for all."
        raise Forbidden(message, rule="bound-key")
    known = SLUG.fullmatch(args.node_slug)
    row = await ctx.world.nodes.refresh_config(ctx.tx, args.node_slug) if known else None
    if row is None:
        raise NotFound(NOT_FOUND)
    node = NodeInfo(**node_fields(row, ctx.world.liveness))
    return Refreshed(node=node, refresh_config_requested=True)


def _image(row: Row) -> AvailableImage:
    return AvailableImage(
        image_ref=row["name"], status=row["status"], reported_at=row["reported_at"]
    )


def _model(row: Row) -> AvailableModel:
    return AvailableModel(
        model=row["name"],
        version=row["version"] or None,
        status=row["status"],
        reported_at=row["reported_at"],
    )
