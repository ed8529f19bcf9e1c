"""Skills looked at again: what the patterns of today find in texts of yesterday."""

from typing import Any

from pydantic import Field

from toolgate.gate.errors import Conflict
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, Reason, Uuid
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.skills.store import BY_OPERATOR
from toolgate.packs.orchestrator.tools.operator.lists import Ctx, listed, needed
from toolgate.packs.orchestrator.tools.skill_texts import Noted, read_again

family = Family("operator_skills", ORCHESTRATOR)

SKILL = "00000000-0000-4000-8000-0000000000d1"


class BySkill(Input):
    """Which skill."""

    skill_id: Uuid = Field(description="The skill's id.")


class Quarantine(BySkill):
    """Which skill is kept from its readers, and why."""

    reason: Reason = Field(description="Why; admins are told, agents are not.")


class Finding(Output):
    """What was found in a skill."""

    skill_id: str = Field(description="The skill's id.")
    name: str = Field(description="Its name.")
    category: str = Field(description="What it is.")
    triggering_text: str = Field(description="The piece of text, as written, or the reason.")
    field: str | None = Field(default=None, description="Where: name or content.")
    line: int | None = Field(default=None, description="On which line of the content.")


class Rescan(Output):
    """What a look at a page of skills found."""

    scanned: int = Field(description="How many skills were looked at.")
    quarantined: list[Finding] = Field(description="Those that nobody reads from now on.")
    next_cursor: NextCursor = ""


class State(Output):
    """A skill's state."""

    skill_id: str = Field(description="The skill's id.")
    quarantined: bool = Field(description="Whether it is kept from its readers.")


@family.tool(
    "operator.skill.rescan",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Look at stored skills again",
)
async def rescan(ctx: Ctx, args: Paged) -> Rescan:
    """Look at stored skills with the patterns of today, page by page.

    What is found is put into quarantine: nobody reads it until its text is changed. A copy of what
    an operator put into quarantine is found too, and released by an operator.
    """
    rows, more = await listed(ctx, "skill", args, {})
    # All are read before the first is written: no transaction is open while texts are examined.
    looks = {row["id"]: await _look(ctx, row) for row in rows}
    digests = {skill_id: digest for skill_id, (digest, _) in looks.items()}
    refused = {
        digests[row["id"]]: row["id"]
        for row in rows
        if row["quarantine"] is not None and row["quarantine"]["category"] == BY_OPERATOR
    }
    refused |= await ctx.world.skills.quarantined_texts([*digests.values()])
    found = [
        (row, noted)
        for row in rows
        if row["quarantine"] is None
        and (noted := looks[row["id"]][1] or _copied(refused.get(digests[row["id"]])))
    ]
    for row, noted in found:
        # Of this version only: a text that was mended meanwhile is not what was looked at.
        await _set(ctx, {"id": row["id"], "version": row["version"]}, noted)
    for digest, skill_id in sorted(refused.items()):  # also of releases without such notes
        await ctx.world.skills.refuse_text(ctx.tx, digest, skill_id)
    findings = [Finding(skill_id=row["id"], name=row["name"], **noted) for row, noted in found]
    return Rescan(scanned=len(rows), quarantined=findings, **more)


@family.tool(
    "operator.skill.quarantine",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Put a skill into quarantine",
    example={"skill_id": SKILL, "reason": "It names a server that is gone."},
)
async def quarantine(ctx: Ctx, args: Quarantine) -> State:
    """Keep a skill from its readers until an operator releases it; its owner may mend it.

    The text that it has now is not stored again as another skill, also once this one is deleted.
    `operator.skill.rescan` finds the copies that there are.
    """
    row = await needed(ctx, "skill", id=args.skill_id)
    digest, _ = await _look(ctx, row)
    await _set(
        ctx, {"id": args.skill_id}, {"category": BY_OPERATOR, "triggering_text": args.reason}
    )
    await ctx.world.skills.refuse_text(ctx.tx, digest, args.skill_id)
    return State(skill_id=args.skill_id, quarantined=True)


@family.tool(
    "operator.skill.release",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Release a skill from quarantine",
    example={"skill_id": SKILL},
)
async def release(ctx: Ctx, args: BySkill) -> State:
    """Let a skill be read and its text be stored again; one that is deleted, the texts it had.

    A skill whose text would be refused today stays where it is.
    """
    if await ctx.world.administration.find(ctx.tx, "skill", {"id": args.skill_id}) is None and (
        await ctx.world.skills.allow_texts_of(ctx.tx, args.skill_id)
    ):
        return State(skill_id=args.skill_id, quarantined=False)
    row = await needed(ctx, "skill", id=args.skill_id)
    digest, found = await _look(ctx, row)
    if found is not None:
        what = f"{found['category']}: {found['triggering_text']!r}"
        raise Conflict(f"It would be refused ({what}). Change its name or text.")
    await _set(ctx, {"id": args.skill_id}, None)
    await ctx.world.skills.allow_text(ctx.tx, digest)
    return State(skill_id=args.skill_id, quarantined=False)


def _copied(skill_id: str | None) -> Noted | None:
    """What is noted of a skill that has the text of this one, which is in quarantine."""
    if skill_id is None:
        return None
    return {"category": BY_OPERATOR, "triggering_text": f"It has the text of skill {skill_id}."}


async def _look(ctx: Ctx, row: Row) -> tuple[str, Noted | None]:
    return await read_again(ctx.principal.id, ctx.world.content_audit, row)


async def _set(ctx: Ctx, key: dict[str, Any], finding: dict[str, Any] | None) -> None:
    await ctx.world.administration.update(ctx.tx, "skill", key, {"quarantine": finding})
