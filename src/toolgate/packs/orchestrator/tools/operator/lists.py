"""What the tools of operators have in common."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.tool import Output
from toolgate.packs.orchestrator.administration import Kind
from toolgate.packs.orchestrator.pack import Paged, WithoutSecret
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.pages import next_cursor
from toolgate.packs.orchestrator.vocabulary import HANDLE
from toolgate.packs.orchestrator.world import OrchestratorWorld

Ctx = Context[OrchestratorWorld]
MAX_HANDLE = 64
EXAMPLES = {"slug": "newsletter", "group_id": "writers", "node_id": "node-1"}
MAX_NAME = 200
MAX_TEXT = 64 * 1024


def _handle(value: str, info: ValidationInfo) -> str:
    if not HANDLE.fullmatch(value):
        raise PydanticCustomError(
            TOLD_FORMAT,
            "{field} must be a-z, 0-9, dots, _ and - with a letter or digit first, such as "
            "{example}",
            {"field": info.field_name, "example": EXAMPLES.get(info.field_name or "", "alice")},
        )
    return value


Handle = Annotated[str, Field(min_length=1, max_length=MAX_HANDLE), AfterValidator(_handle)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), WithoutSecret]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]

One = TypeVar("One", bound=Output)


class Removed(Output):
    """It is gone."""


async def listed(
    ctx: Ctx, kind: Kind, args: Paged, where: Mapping[str, Any]
) -> tuple[list[Row], dict[str, str]]:
    """A page of records with these values, and its `next_cursor` where others follow."""
    given = {name: value for name, value in where.items() if value is not None}
    listing = (f"operator.{kind}", *(f"{name}={value}" for name, value in sorted(given.items())))
    after = ctx.world.cursors.read(listing, args.cursor)
    page = await ctx.world.administration.page(kind, given, after, args.limit)
    return list(page.rows), next_cursor(ctx.world, listing, page.next)


async def needed(ctx: Ctx, kind: Kind, **key: Any) -> Row:
    """A record that the arguments refer to; raises `NotFound` where there is none."""
    row = await ctx.world.administration.find(ctx.tx, kind, key)
    if row is None:
        named = " and ".join(repr(value) for value in key.values())
        raise NotFound(f"There is no {kind.replace('_', ' ')} {named}.")
    return row


async def known(ctx: Ctx, kind: Kind, id: str | None) -> None:
    """Raise `NotFound` where a list is asked for what belongs to a record that does not exist."""
    if id is not None and not await is_known(ctx, kind, id):
        raise NotFound(f"There is no {kind.replace('_', ' ')} {id!r}.")


async def is_known(ctx: Ctx, kind: Kind, id: str) -> bool:
    """Whether there is a record of this id."""
    return bool((await ctx.world.administration.page(kind, {"id": id}, None, 1)).rows)


def shown(model: type[One], row: Mapping[str, Any]) -> One:
    """A record as an answer shows it."""
    return model(**{name: row[name] for name in model.model_fields})
