"""Models: which there are, and on which nodes."""

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output
from toolgate.packs.orchestrator.models import (
    MAX_COUNTED_NODES,
    MAX_LISTED_NODES,
    MAX_NODES,
    NOWHERE,
    Placement,
    WholeModel,
)
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, SomeId
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.vocabulary import ArtifactType, AvailabilityStatus
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("models", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
NOT_FOUND = "Model not found"
LISTING = ("model.list",)
LLAMA = "00000000-0000-4000-8000-0000000000f1"


ModelId = Annotated[SomeId, Field(min_length=1)]


class ByModel(Input):
    """Which model."""

    model_id: ModelId = Field(description="The model's id, from model.list.")


class OnNode(Output):
    """A model on a node."""

    node_slug: str = Field(description="The node; only active ones are listed.")
    version: str | None = Field(description="The version there, if the node named one.")
    status: AvailabilityStatus = Field(description="Whether it can be used there.")
    reported_at: str = Field(description="When the node said so, ISO 8601.")


class ModelRecord(Output):
    """A model as an operator described it."""

    id: str = Field(description="The model's id.")
    name: str = Field(description="Its name, as nodes report it.")
    vendor: str | None = Field(description="Who makes it.")
    description: str | None = Field(description="What it is good for.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")


class ModelInfo(ModelRecord):
    """A model, and where it is now."""

    availability: list[OnNode] = Field(
        description=f"Where it is now, by node: at most {MAX_LISTED_NODES} in a list, "
        f"{MAX_NODES} of a single model."
    )
    availability_total: int = Field(
        description=f"In how many places it is; in a list, at most {MAX_COUNTED_NODES} are counted."
    )


class Artifact(Output):
    """A file of a version."""

    id: str = Field(description="The artifact's id.")
    artifact_type: ArtifactType = Field(description="Its format.")
    sha256: str = Field(description="Its checksum, hexadecimal.")
    size_bytes: int = Field(description="Its size.")
    cache_path: str | None = Field(description="Where nodes keep it.")
    source_uri: str | None = Field(description="Where it comes from.")


class Version(Output):
    """A version of a model."""

    version: str = Field(description="Its name.")
    capabilities: dict[str, Any] = Field(
        description="What it can do: context_length, tool_use, vision, json_mode and others."
    )
    default_parameters: dict[str, Any] = Field(description="Parameters unless others are given.")
    artifacts: list[Artifact] = Field(description="Its files.")


class Model(ModelInfo):
    """A model with its versions."""

    versions: list[Version] = Field(description="The versions, by name.")


class ModelList(Output):
    """A page of models."""

    entries: list[ModelInfo] = Field(description="The models, by name.")
    next_cursor: NextCursor = ""


@family.tool("model.list", role=Role.ADMIN, effect=Effect.READ, title="List models")
async def list_(ctx: Ctx, args: Paged) -> ModelList:
    """List the models by name, page by page, with the active nodes that have them."""
    after = key_before(ctx.world, LISTING, args.cursor)
    page = await ctx.world.models.page(after, args.limit)
    entries = [_info(row, page.placements.get(row["name"], NOWHERE)) for row in page.rows]
    last = [entries[-1].name] if page.more else None
    return ModelList(entries=entries, **next_cursor(ctx.world, LISTING, last))


@family.tool(
    "model.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a model",
    example={"model_id": LLAMA},
)
async def get(ctx: Ctx, args: ByModel) -> Model:
    """Read one model: its versions, their artifacts, and the active nodes that have it."""
    found = await ctx.world.models.whole(args.model_id)
    if found is None:
        raise NotFound(NOT_FOUND)
    return Model(**_placed(found.row, found.placement), versions=_versions(found))


def record_fields(row: Row) -> dict[str, Any]:
    """The fields of a `ModelRecord`."""
    return {name: row[name] for name in ModelRecord.model_fields}


def version_of(row: Row, artifacts: list[Artifact]) -> Version:
    """A version as it is shown."""
    return Version(
        version=row["version"],
        capabilities=orjson.loads(row["capabilities"]),
        default_parameters=orjson.loads(row["default_parameters"]),
        artifacts=artifacts,
    )


def artifact_of(row: Row) -> Artifact:
    """An artifact as it is shown."""
    return Artifact(**{name: row[name] for name in Artifact.model_fields})


def _versions(found: WholeModel) -> list[Version]:
    files: dict[str, list[Artifact]] = {}
    for row in found.artifacts:
        files.setdefault(row["version"], []).append(artifact_of(row))
    return [version_of(row, files.get(row["version"], [])) for row in found.versions]


def _info(row: Row, placement: Placement) -> ModelInfo:
    return ModelInfo(**_placed(row, placement))


def _placed(row: Row, placement: Placement) -> dict[str, Any]:
    return record_fields(row) | {
        "availability": [_on_node(one) for one in placement.rows],
        "availability_total": placement.total,
    }


def _on_node(row: Mapping[str, Any]) -> OnNode:
    return OnNode(
        node_slug=row["node_slug"],
        version=row["version"] or None,
        status=row["status"],
        reported_at=row["reported_at"],
    )
