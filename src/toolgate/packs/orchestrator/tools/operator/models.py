"""What operators do to models: describe them, their versions and their artifacts."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.fields import Between
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Target
from toolgate.packs.orchestrator.models import MAX_ARTIFACTS, MAX_VERSIONS, NewArtifact
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, Line
from toolgate.packs.orchestrator.tools.models import (
    NOT_FOUND,
    Artifact,
    ByModel,
    ModelRecord,
    Version,
    artifact_of,
    record_fields,
    version_of,
)
from toolgate.packs.orchestrator.tools.node_fields import (
    JsonObject,
    Url,
    check_object,
    check_secret,
)
from toolgate.packs.orchestrator.tools.operator.lists import Ctx, Removed
from toolgate.packs.orchestrator.urls import MAX_CHARACTERS
from toolgate.packs.orchestrator.vocabulary import ArtifactType

family = Family("operator_models", ORCHESTRATOR)

NO_VERSION = "Version not found"
MAX_OBJECT_BYTES = 8 * 1024
SHA256 = re.compile(r"[0-9a-f]{64}")
LLAMA = "00000000-0000-4000-8000-0000000000f1"


def _sha256(value: str, info: ValidationInfo) -> str:
    if not SHA256.fullmatch(value):
        told = {"field": info.field_name}
        message = "{field} must be a SHA-256 checksum: 64 of 0-9 and a-f"
        raise PydanticCustomError(TOLD_FORMAT, message, told)
    return value


Description = Annotated[str, Field(min_length=1, max_length=2000)]
Sha256 = Annotated[str, AfterValidator(_sha256)]
Path = Annotated[Line, Field(max_length=MAX_CHARACTERS)]
Bytes = Annotated[int, Between(0, 2**53)]


class Described(Input):
    """A model to be stored."""

    name: Line = Field(description="Its name, as nodes report it, such as llama3.")
    vendor: Line | None = Field(default=None, description="Who makes it.")
    description: Description | None = Field(default=None, description="What it is good for.")


class Change(ByModel):
    """What of a model is changed; what is left out stays as it is."""

    name: Line | None = Field(default=None, description="The new name.")
    vendor: Line | None = Field(default=None, description="Who makes it.")
    description: Description | None = Field(default=None, description="What it is good for.")


class ByVersion(ByModel):
    """Which version."""

    version: Line = Field(description="The version's name, such as 8b-instruct-q4.")


class NewVersion(ByVersion):
    """A version to be stored."""

    capabilities: JsonObject = Field(
        default={}, description="What it can do, such as context_length and tool_use; 8 KiB."
    )
    default_parameters: JsonObject = Field(
        default={}, description="Parameters unless others are given; 8 KiB."
    )


class NewFile(ByVersion):
    """An artifact to be stored."""

    artifact_type: ArtifactType = Field(description="Its format.")
    sha256: Sha256 = Field(description="Its checksum, 64 hexadecimal digits.")
    size_bytes: Bytes = Field(description="Its size.")
    cache_path: Path | None = Field(default=None, description="Where nodes keep it.")
    source_uri: Url | None = Field(
        default=None, description="Where it comes from; user and password are not kept."
    )


@family.tool(
    "operator.model.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create a model",
    example={"name": "mistral-small", "vendor": "Mistral AI"},
)
async def create(ctx: Ctx, args: Described) -> ModelRecord:
    """Describe a model that nodes may have."""
    _check_texts(args)
    given = (args.name, args.vendor, _clean(args.description))
    return ModelRecord(**record_fields(await ctx.world.models.create(ctx.tx, *given)))


@family.tool(
    "operator.model.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Change a model",
    idempotent=True,
    example={"model_id": LLAMA, "vendor": "Meta"},
)
async def update(ctx: Ctx, args: Change) -> ModelRecord:
    """Change a model's name, vendor or description."""
    _check_texts(args)
    given = {"name": args.name, "vendor": args.vendor, "description": _clean(args.description)}
    change = {name: value for name, value in given.items() if value is not None}
    if not change:
        message = "one of name, vendor and description must be given"
        raise InvalidArguments([Problem("arguments", "missing", message)])
    row = await ctx.world.models.update(ctx.tx, args.model_id, change)
    if row is None:
        raise NotFound(NOT_FOUND)
    return ModelRecord(**record_fields(row))


@family.tool(
    "operator.model.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete a model",
    example={"model_id": LLAMA},
)
async def delete(ctx: Ctx, args: ByModel) -> Removed:
    """Delete a model with its versions and artifacts; nodes keep what they have."""
    if await ctx.world.models.delete(ctx.tx, args.model_id) is None:
        raise NotFound(NOT_FOUND)
    return Removed()


@family.tool(
    "operator.model.add_version",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Add a version of a model",
    note=f"A model has at most {MAX_VERSIONS} versions.",
    example={"model_id": LLAMA, "version": "70b", "capabilities": {"context_length": 8192}},
)
async def add_version(ctx: Ctx, args: NewVersion) -> Version:
    """Add a version to a model."""
    await check_object(ctx.principal.id, "capabilities", args.capabilities, MAX_OBJECT_BYTES)
    await check_object(
        ctx.principal.id, "default_parameters", args.default_parameters, MAX_OBJECT_BYTES
    )
    check_secret("version", args.version)
    given = (args.version, args.capabilities, args.default_parameters)
    row = await ctx.world.models.add_version(ctx.tx, args.model_id, *given)
    if row is None:
        raise NotFound(NOT_FOUND)
    return version_of(row, [])


@family.tool(
    "operator.model.remove_version",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Remove a version of a model",
    example={"model_id": LLAMA, "version": "8b"},
)
async def remove_version(ctx: Ctx, args: ByVersion) -> Removed:
    """Remove a version of a model with its artifacts."""
    if not await ctx.world.models.remove_version(ctx.tx, args.model_id, args.version):
        raise NotFound(NO_VERSION)
    return Removed()


@family.tool(
    "operator.model.add_artifact",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Add an artifact of a version",
    note=f"A version has at most {MAX_ARTIFACTS} artifacts.",
    example={
        "model_id": LLAMA,
        "version": "8b",
        "artifact_type": "gguf",
        "sha256": "0" * 64,
        "size_bytes": 4661211808,
    },
)
async def add_artifact(ctx: Ctx, args: NewFile) -> Artifact:
    """Add a file to a version of a model."""
    check_secret("cache_path", args.cache_path)
    check_secret("source_uri", args.source_uri)
    artifact = NewArtifact(
        artifact_type=args.artifact_type,
        sha256=args.sha256,
        size_bytes=args.size_bytes,
        cache_path=args.cache_path,
        source_uri=args.source_uri,
    )
    row = await ctx.world.models.add_artifact(ctx.tx, args.model_id, args.version, artifact)
    if row is None:
        raise NotFound(NO_VERSION)
    return artifact_of(row)


def _check_texts(args: Described | Change) -> None:
    for field in ("name", "vendor", "description"):
        check_secret(field, getattr(args, field))


def _clean(text: str | None) -> str | None:
    """Without what a database refuses."""
    return None if text is None else text.replace("\x00", "\ufffd")
