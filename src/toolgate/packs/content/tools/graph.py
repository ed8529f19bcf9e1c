"""What an entity is related to, one or two steps away."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD
from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Route, StoredOutput
from toolgate.packs.content.pack import CONTENT, MAX_TEXT
from toolgate.packs.content.store import RELATION_TYPES
from toolgate.packs.content.tools.entities import NO_ENTITY, Entity, EntityRef
from toolgate.packs.content.world import ContentWorld

# Field names are the seed's own, hence in camel case.
# ruff: noqa: N815

family = Family("content", CONTENT)


def _depth(value: object) -> object:
    if isinstance(value, bool) or value not in (1, 2):
        raise PydanticCustomError(TOLD, "depth must be 1 or 2")
    return int(value)  # pyright: ignore[reportArgumentType]


def _split_names(value: str) -> list[str]:
    """The names between the commas, without the spaces around them."""
    return [name.strip(" ") for name in value.split(",")] if value else []


def _known_types(value: str) -> str:
    for name in _split_names(value):
        if name not in RELATION_TYPES:
            context = {"name": name[:100] or "an empty name", "valid": ", ".join(RELATION_TYPES)}
            raise PydanticCustomError(
                TOLD, "relationshipTypes: {name} is not known. Valid options: {valid}", context
            )
    return value


class GraphRef(EntityRef):
    """Which entity, and how far."""

    depth: Annotated[Literal[1, 2], BeforeValidator(_depth)] = Field(
        default=1, description="How many steps to follow: 1 or 2."
    )
    relationshipTypes: Annotated[str, AfterValidator(_known_types)] = Field(
        default="",
        max_length=MAX_TEXT,
        description="Only these types, comma-separated; all if omitted: "
        + ", ".join(RELATION_TYPES)
        + ".",
    )


class RelatedEntity(Output):
    """An entity in short."""

    id: str = Field(description="The entity's id, a UUID.")
    entityType: str = Field(description="What it is.")
    title: str = Field(description="Its title.")
    slug: str = Field(description="Its name in URLs.")
    status: str = Field(description="Its publication status.")


class Relationship(Output):
    """One relation."""

    id: str = Field(description="The relation's id, a UUID.")
    relationType: str = Field(description="What kind of relation it is.")
    fromEntityId: str = Field(description="Where it begins.")
    toEntityId: str = Field(description="Where it ends.")
    notes: str | None = Field(description="What an editor noted.")
    createdAt: str = Field(description="When it was created, ISO 8601.")
    relatedEntity: RelatedEntity | None = Field(
        description="The end farther from the root; null when that is no entity of the project."
    )


class Graph(StoredOutput):
    """An entity and its relations."""

    rootEntity: Entity = Field(description="The entity that was asked for.")
    relationships: list[Relationship] = Field(
        description="Relations of the root, then those one step further; newest first in each."
    )
    depth: int = Field(description="How many steps were followed.")


@family.tool(
    "get_entity_graph",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get an entity's graph",
    route=Route("/api/entities/{entityId}/graph"),
    example={
        "projectId": "00000000-0000-4000-a000-000000000001",
        "entityId": "00000000-0000-4000-a000-000000000101",
        "depth": 2,
    },
)
async def get_entity_graph(ctx: Context[ContentWorld], args: GraphRef) -> Graph:
    """Get an entity with its relations, and at depth 2 the relations of its neighbours.

    Use `get_entity` for the entity alone.
    """
    types = _split_names(args.relationshipTypes)
    graph = await ctx.world.store.graph(args.projectId, args.entityId, args.depth, types)
    if graph is None:
        raise NotFound(NO_ENTITY)
    return Graph.model_construct(rootEntity=graph.root, relationships=graph.edges, depth=args.depth)
