"""What access rules about projects keep out of lists: what they refuse to read is not listed."""

from toolgate.gate.context import Context
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.access_rules import (
    INVOKE,
    NONE_DENIED,
    Attempt,
    DeniedProjects,
    denied_projects,
)
from toolgate.packs.orchestrator.pack import Paged
from toolgate.packs.orchestrator.world import OrchestratorWorld

Ctx = Context[OrchestratorWorld]


async def find_denied(
    ctx: Ctx, viewer: Viewer, args: Paged, tools: tuple[str, ...], naming: str
) -> DeniedProjects:
    """The projects of a caller that one of these tools is denied in; of an admin, none.

    `naming` is the argument with which one of the tools names a single record.
    """
    agent_type, rules = ctx.principal.agent_type, ctx.world.access_rules
    if agent_type is None or "project" not in await rules.subject_types():
        return NONE_DENIED
    about = await rules.about_projects(viewer)
    if about is None:
        return DeniedProjects(every=True)
    left_out = args.filters_left_out()
    attempts = [Attempt(INVOKE, tool, agent_type, vars(args), any_value=left_out) for tool in tools]
    return DeniedProjects(denied_projects(about, attempts, naming))
