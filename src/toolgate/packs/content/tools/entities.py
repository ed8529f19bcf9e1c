"""Entities: guides, concepts, projects and news."""

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from toolgate.gate.arguments import TOLD
from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Output, Route, StoredOutput
from toolgate.packs.content.pack import (
    CONTENT,
    InProject,
    Paged,
    Pagination,
    Substring,
    Uuid,
    page_output,
    require_project,
)
from toolgate.packs.content.store import ConceptKind, Difficulty, EntityFilter, EntityType, Status
from toolgate.packs.content.world import ContentWorld

# Field names are the seed's own, hence in camel case.
# ruff: noqa: N815

family = Family("content", CONTENT)

NO_ENTITY = "Entity not found"


class Entity(Output):
    """One entity."""

    id: str = Field(description="The entity's id, a UUID.")
    projectId: str = Field(description="The project it belongs to.")
    entityType: EntityType = Field(description="What it is.")
    title: str = Field(description="Its title.")
    slug: str = Field(description="Its name in URLs.")
    summary: str | None = Field(description="A short summary.")
    difficulty: Difficulty | None = Field(description="For whom it is written.")
    conceptKind: ConceptKind | None = Field(description="For concepts: the kind.")
    repoUrl: str | None = Field(description="For projects: where the code is.")
    status: Status = Field(description="Its publication status.")
    canonicalUrl: str | None = Field(description="Its canonical URL.")
    lastVerifiedAt: str | None = Field(description="When it was last checked, ISO 8601.")
    createdAt: str = Field(description="When it was created, ISO 8601.")
    updatedAt: str = Field(description="When it was changed, ISO 8601.")


class Entities(StoredOutput):
    """A page of entities."""

    data: list[Entity] = Field(description="The entities, newest first.")
    pagination: Pagination = Field(description="Where in the list this page is.")


class EntityQuery(InProject, Paged):
    """Which entities."""

    entityType: EntityType | None = Field(default=None, description="Only this type.")
    status: Status | None = Field(default=None, description="Only with this status.")
    conceptKind: ConceptKind | None = Field(default=None, description="Only concepts of this kind.")
    search: Substring = Field(
        default=None, description="Only with this text in title or slug, ignoring case."
    )

    @field_validator("conceptKind")
    @classmethod
    def _of_a_concept(cls, kind: str | None, info: ValidationInfo) -> str | None:
        if kind is not None and info.data.get("entityType") not in (None, "concept"):
            raise PydanticCustomError(TOLD, "conceptKind is only valid with entityType concept")
        return kind


@family.tool(
    "search_entities",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Search entities",
    route=Route("/api/entities"),
    example={"projectId": "00000000-0000-4000-a000-000000000001", "entityType": "concept"},
)
async def search_entities(ctx: Context[ContentWorld], args: EntityQuery) -> Entities:
    """Search the entities of a project by type, status, kind and text; newest first.

    Use `get_entity` when the id is known, `get_entity_graph` for what it is related to.
    """
    filters = EntityFilter(
        entity_type=args.entityType,
        status=args.status,
        concept_kind=args.conceptKind,
        search=args.search,
    )
    page = require_project(
        await ctx.world.store.entities(args.projectId, filters, args.requested_page)
    )
    return page_output(Entities, args, page)


class EntityRef(InProject):
    """Which entity."""

    entityId: Uuid = Field(description="The entity's id, a UUID.")


@family.tool(
    "get_entity",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get an entity",
    route=Route("/api/entities/{entityId}"),
    example={
        "projectId": "00000000-0000-4000-a000-000000000001",
        "entityId": "00000000-0000-4000-a000-000000000101",
    },
)
async def get_entity(ctx: Context[ContentWorld], args: EntityRef) -> Entity:
    """Get one entity of a project by its id.

    Use `search_entities` when the id is not known.
    """
    row = await ctx.world.store.entity(args.projectId, args.entityId)
    if row is None:
        raise NotFound(NO_ENTITY)
    return Entity.model_validate(row)
