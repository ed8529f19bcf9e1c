"""Quotable blocks: statements that stand by themselves, with their source."""

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Route, StoredOutput
from toolgate.packs.content.pack import (
    CONTENT,
    DATES,
    InProject,
    Moment,
    Paged,
    Pagination,
    Substring,
    Uuid,
    page_output,
    require_project,
)
from toolgate.packs.content.store import BlockFilter, ClaimType
from toolgate.packs.content.world import ContentWorld

# Field names are the seed's own, hence in camel case.
# ruff: noqa: N815

family = Family("content", CONTENT)


class Block(Output):
    """One statement."""

    id: str = Field(description="The block's id, a UUID.")
    projectId: str = Field(description="The project it belongs to.")
    entityId: str = Field(description="The entity it is taken from.")
    text: str = Field(description="The statement.")
    claimType: ClaimType = Field(description="What sort of claim it is.")
    sourceCitation: str | None = Field(description="Where it comes from.")
    verifiedUntil: str | None = Field(description="When the claim expires, ISO 8601.")
    topicTag: str | None = Field(description="The concept it is grouped under.")
    createdAt: str = Field(description="When it was created, ISO 8601.")
    updatedAt: str = Field(description="When it was changed, ISO 8601.")


class Blocks(StoredOutput):
    """A page of blocks."""

    data: list[Block] = Field(description="The blocks, newest first.")
    pagination: Pagination = Field(description="Where in the list this page is.")


class BlockQuery(InProject, Paged):
    """Which blocks."""

    entityId: Uuid | None = Field(default=None, description="Only of this entity.")
    claimType: ClaimType | None = Field(default=None, description="Only claims of this sort.")
    topicTag: Substring = Field(default=None, description="Only with this text in the tag.")
    verifiedUntilBefore: Moment | None = Field(
        default=None,
        description=f"Only claims that expire then or earlier: {DATES}.",
    )
    verifiedUntilAfter: Moment | None = Field(
        default=None,
        description=f"Only claims that expire then or later: {DATES}.",
    )


@family.tool(
    "list_quotable_blocks",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List quotable blocks",
    route=Route("/api/quotable-blocks"),
    example={"projectId": "00000000-0000-4000-a000-000000000001", "claimType": "definition"},
)
async def list_quotable_blocks(ctx: Context[ContentWorld], args: BlockQuery) -> Blocks:
    """List a project's quotable statements with their sources, newest first.

    Filter by expiry to find claims that need to be checked again.
    """
    filters = BlockFilter(
        entity_id=args.entityId,
        claim_type=args.claimType,
        topic_tag=args.topicTag,
        verified_before=args.verifiedUntilBefore,
        verified_after=args.verifiedUntilAfter,
    )
    page = require_project(
        await ctx.world.store.blocks(args.projectId, filters, args.requested_page)
    )
    return page_output(Blocks, args, page)
