"""Artifacts: files that agents keep for a task, read by whoever reaches the task."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.attachments import MEDIA_TYPE, OCTETS, Attachment, Pieces
from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict, Gone, NotFound, QuotaExceeded
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.access import viewer_of
from toolgate.packs.orchestrator.artifacts.content import (
    MAX_BYTES,
    Damaged,
    StoredContent,
    decoded,
)
from toolgate.packs.orchestrator.artifacts.paths import NewPath, Path, Prefix
from toolgate.packs.orchestrator.artifacts.store import NewArtifact
from toolgate.packs.orchestrator.pack import (
    ORCHESTRATOR,
    JobId,
    NextCursor,
    Paged,
    RunId,
    TaskId,
    WithoutSecret,
)
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.settings import OrchestratorSettings
from toolgate.packs.orchestrator.tools.pages import key_before, next_cursor
from toolgate.packs.orchestrator.world import OrchestratorWorld
from toolgate.ports.blobs import BlobMissing

family = Family("artifacts", ORCHESTRATOR)

Ctx = Context[OrchestratorWorld]
NO_TASK, NO_ARTIFACT = "Task not found", "Artifact not found"
NO_JOB = "The task has no such job."
LISTING = "artifact.list"
BODY_BYTES = MAX_BYTES * 7 // 5
"""An artifact as base64, and room for the other arguments."""
READ_ONCE = 512 * 1024
"""Bytes of an artifact that is in memory while it is sent; a larger one is read in pieces."""
TASK = "00000000-0000-4000-8000-0000000000b1"
PATH = (
    "Its relative path, such as `out/report.md`; compared by bytes, so case and Unicode form (NFC, "
    "NFD) count."
)
DEFAULTS = OrchestratorSettings.model_fields
QUOTA = (
    f"A task holds at most {DEFAULTS['task_artifacts'].default:,} artifacts with "
    f"{DEFAULTS['task_artifact_bytes'].default // 1024**2:,} MiB together, unless the settings "
    "orchestrator.task_artifacts and orchestrator.task_artifact_bytes say otherwise."
)
REPLACED = "The artifact was replaced while it was read. Ask again."
LOST = "The content of this artifact is {}. Store it again, or restore the blob {}."


def _media_type(value: str, info: ValidationInfo) -> str:
    if not MEDIA_TYPE.fullmatch(value):
        told = {"field": info.field_name}
        raise PydanticCustomError(
            TOLD_FORMAT, "{field} must be a media type such as text/markdown", told
        )
    kind, semicolon, parameters = value.partition(";")
    return f"{kind.lower()}{semicolon}{parameters}"


MediaType = Annotated[
    str,
    AfterValidator(_media_type),
    WithoutSecret,
    WithJsonSchema({"type": "string", "maxLength": 255}),
]


class OfTask(Input):
    """Which task."""

    task_id: TaskId = Field(description="The task's id, a UUID.")


class ByPath(OfTask):
    """Which artifact."""

    path: Path = Field(description=PATH)


class Written(OfTask):
    """An artifact to be stored."""

    path: NewPath = Field(description=PATH)
    content_bytes_base64: str = Field(
        description=f"The bytes, at most {MAX_BYTES // 1024**2} MiB, in base64: with padding, "
        "without spaces.",
        json_schema_extra={"contentEncoding": "base64"},
    )
    content_type: MediaType = Field(default=OCTETS, description="Their media type.")
    run_id: RunId | None = Field(default=None, description="The run that makes it, for the audit.")
    job_id: JobId | None = Field(
        default=None, description="The job of this task that makes it, for the audit."
    )


class Listed(OfTask, Paged):
    """Which artifacts."""

    prefix: Prefix = Field(
        default="", description="Only paths that begin with exactly this text; compared by bytes."
    )


class ArtifactInfo(Output):
    """An artifact without its bytes."""

    path: str = Field(description="Its path.")
    storage_ref: str = Field(description="The name of the blob with its bytes.")
    size_bytes: int = Field(description="How many bytes it has.")
    content_type: str = Field(description="Their media type, as whoever stored it said.")
    checksum_sha256: str = Field(description="Their SHA-256, in hexadecimal.")
    created_at: str = Field(description="When there first was one at this path, ISO 8601.")
    updated_at: str = Field(description="When it was stored last, ISO 8601.")


class Artifact(ArtifactInfo):
    """An artifact."""

    content_bytes_base64: Attachment = Field(description="Its bytes.")


class ArtifactList(Output):
    """A page of artifacts."""

    items: list[ArtifactInfo] = Field(description="The artifacts by path, in the order of bytes.")
    next_cursor: NextCursor = ""


@family.tool(
    "artifact.put",
    role=Role.ADMIN,
    effect=Effect.DESTROY,  # what it replaces is gone
    writes=[Target.TABLES, Target.BLOBS],
    idempotent=True,
    body_bytes=BODY_BYTES,
    title="Store an artifact",
    not_found=NO_TASK,
    example={"task_id": TASK, "path": "out/report.md", "content_bytes_base64": "IyBSZXBvcnQK"},
    note=QUOTA,
)
async def put(ctx: Ctx, args: Written) -> ArtifactInfo:
    """Store a file of a task, in the place of the one that is there at this path.

    Whoever reads at the same time gets the old file or the new one, whole.
    """
    if await ctx.world.work.task_to_change(viewer_of(ctx.principal), args.task_id) is None:
        raise NotFound(NO_TASK)
    if args.job_id is not None and not await ctx.world.work.has_job(args.task_id, args.job_id):
        raise NotFound(NO_JOB)
    content = await decoded(args.content_bytes_base64)
    # Before the blob is written, which would lie there until the reaper comes.
    await ctx.world.artifacts.check_room(args.task_id, args.path, len(content.data))
    blob = ctx.world.blob_names.new()
    if not ctx.dry_run:
        await ctx.world.blobs.put(blob, content.data)
    new = NewArtifact(
        task_id=args.task_id,
        path=args.path,
        storage_ref=blob,
        size_bytes=len(content.data),
        content_type=args.content_type,
        checksum_sha256=content.checksum,
        by=ctx.principal.id,
    )
    try:
        stored = await ctx.world.artifacts.put(ctx.tx, new)
    except QuotaExceeded:
        ctx.world.reaper.remove_later(blob)
        raise
    if stored.replaced is not None and not ctx.dry_run:
        ctx.world.reaper.remove_later(stored.replaced)
    return ArtifactInfo(**_shown(stored.row))


@family.tool(
    "artifact.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get an artifact",
    not_found=NO_ARTIFACT,
    example={"task_id": TASK, "path": "site/index.html"},
)
async def get(ctx: Ctx, args: ByPath) -> Artifact:
    """Read one file of a task; its bytes are compared with their checksum first."""
    row = await ctx.world.artifacts.get(viewer_of(ctx.principal), args.task_id, args.path)
    if row is None:
        raise NotFound(NO_ARTIFACT)

    content = StoredContent(
        ctx.world.blobs, row["storage_ref"], row["size_bytes"], row["checksum_sha256"]
    )

    async def read() -> bytes:
        async with _told(ctx, args, content):
            return await content.read()

    async def pieces() -> Pieces:
        async with _told(ctx, args, content):
            return await content.open()

    attachment = Attachment(
        size=content.size,
        read=read,
        media_type=row["content_type"],
        name=row["path"],
        pieces=pieces if content.size > READ_ONCE else None,
    )
    return Artifact(**_shown(row), content_bytes_base64=attachment)


@family.tool(
    "artifact.list",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="List artifacts",
    not_found=NO_TASK,
    example={"task_id": TASK, "prefix": "site/"},
)
async def list_(ctx: Ctx, args: Listed) -> ArtifactList:
    """List the files of a task by path, without their bytes."""
    if await ctx.world.work.task(viewer_of(ctx.principal), args.task_id) is None:
        raise NotFound(NO_TASK)
    listing = (LISTING, args.task_id, args.prefix)
    after = key_before(ctx.world, listing, args.cursor)
    page = await ctx.world.artifacts.page(args.task_id, args.prefix, after, args.limit)
    items = [ArtifactInfo(**_shown(row)) for row in page.rows]
    last = [items[-1].path] if page.more else None
    return ArtifactList(items=items, **next_cursor(ctx.world, listing, last))


@asynccontextmanager
async def _told(ctx: Ctx, args: ByPath, content: StoredContent) -> AsyncGenerator[None]:
    """Where the bytes of an artifact are not there, why not."""
    blob = content.name
    try:
        yield
    except BlobMissing as missing:
        now = await ctx.world.artifacts.get(viewer_of(ctx.principal), args.task_id, args.path)
        if now is None or now["storage_ref"] != blob:
            raise Conflict(REPLACED) from None
        await ctx.world.blobs.check(used=True)  # one that is away has lost nothing
        raise Gone(LOST.format("lost: its blob is not in the store", blob)) from missing
    except Damaged as damaged:
        raise Gone(LOST.format("damaged: it does not have its checksum", blob)) from damaged


def _shown(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ArtifactInfo.model_fields}
