"""Backups."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.backup.paths import path_matcher
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.patterns import MAX_PATTERN, BadPattern
from toolgate.packs.backend.world import BackendWorld

family = Family("operations", BACKEND)

ELSEWHERE = "Documents of pack backend are in Firestore, so they are not in the backup."


def _expression(value: str) -> str:
    try:
        path_matcher(value)
    except BadPattern as problem:
        raise PydanticCustomError(
            TOLD_FORMAT,
            "deletionRegex is no regular expression ({why}). Use RE2's syntax, as `^logs/`",
            {"why": str(problem)},
        ) from None
    return value


Expression = Annotated[str, StringConstraints(max_length=MAX_PATTERN), AfterValidator(_expression)]


class BackupRequest(Input):
    """Which backup."""

    deletionRegex: Expression | None = Field(  # noqa: N815 (the seed's name)
        default=None,
        description="Leaves out the documents whose path, `collection/id`, this regular expression "
        "(RE2) matches somewhere: `^logs/` for all of a collection. Nothing is deleted.",
    )


class Backup(Output):
    """A backup that is whole."""

    name: str = Field(description="Its name; `toolgate restore NAME` reads it back.")
    note: str | None = Field(default=None, description="What is not in it, if there is such.")


@family.tool(
    "create_backup",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Create a backup",
    writes={Target.OUTSIDE, Target.DOCUMENTS},
    slow=True,
    route=Route(f"{ROUTES}/admin/backup", method="POST"),
    example={"deletionRegex": "^logs/"},
)
async def create_backup(ctx: Context[BackendWorld], args: BackupRequest) -> Backup:
    """Create a backup of the whole database, as it is at one moment, while calls go on.

    It is kept with the blobs (a folder, or S3), and holds the documents, records, keys (as hashes)
    and audit of every pack. Answers when it is whole. One is made at a time: a call meanwhile joins
    it.
    """
    backups = ctx.world.backups
    name = await backups.create(args.deletionRegex, ctx.tx.call, ctx.report)
    return Backup(name=name, note=ELSEWHERE) if backups.without_documents else Backup(name=name)
