"""What ends with a user, a group or a project, and what one of an old id must not find."""

from toolgate.packs.orchestrator.administration import ScopeKind
from toolgate.packs.orchestrator.records import Place
from toolgate.packs.orchestrator.tools.operator.lists import Ctx


async def clear_scope(ctx: Ctx, kind: ScopeKind, scope_id: str) -> None:
    """Delete its preferences, the access rules about it and the skills that are for it.

    It is done where something is deleted, and once more where something gets an id: that one is
    new, whatever was stored for it at the moment of the deletion or before there was this rule.
    """
    world = ctx.world
    place, reason = Place(kind, scope_id), f"the {kind} was deleted"
    await world.preferences.clear(ctx.tx, place, by=ctx.principal.id, reason=reason)
    await world.administration.forget_scope(ctx.tx, kind, scope_id)
    await world.access_rules.changed(ctx.tx)
