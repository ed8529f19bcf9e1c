"""Asks the access rules about a call of an agent, once its arguments are parsed and in scope."""

from toolgate.gate.access_checks import AccessRequest
from toolgate.packs.orchestrator.access import viewer_of
from toolgate.packs.orchestrator.access_rules import INVOKE, Attempt, Subject, refusing_rule
from toolgate.packs.orchestrator.world import OrchestratorWorld


async def check(world: OrchestratorWorld, request: AccessRequest) -> str | None:
    """The rule that refuses the call, or None; admins are not subject to access rules."""
    principal = request.principal
    if principal.agent_type is None:
        return None
    rules = await world.access_rules.about(INVOKE, request.tool)
    subjects: set[Subject] = {
        ("system", ""),
        ("agent", principal.agent_type.value),
        ("agent", principal.id),
    }
    kinds = {rule.subject[0] for rule in rules}
    if principal.user_id is not None:
        subjects.add(("user", principal.user_id))
        if "group" in kinds:
            groups = await world.access_rules.groups_of(principal.user_id)
            subjects.update(("group", one) for one in groups)
    if kinds & {"task", "project"}:
        subjects |= await _places(world, request)
    return refusing_rule(
        rules, Attempt(frozenset(subjects), principal.agent_type, request.arguments)
    )


async def _places(world: OrchestratorWorld, request: AccessRequest) -> set[Subject]:
    """The task and the project that a call is about, as far as its caller reaches them.

    What it does not reach is left to the tool, which does not find it: a refusal would tell that
    it is there.
    """
    viewer, ids = viewer_of(request.principal), {**request.principal.bound, **request.ids}
    task, project = ids.get("task_id"), ids.get("project_id")
    match getattr(request.arguments, "scope_type", None):
        case "task":
            task = request.arguments.scope_id
        case "project":
            project = request.arguments.scope_id
        case _:
            pass
    if task is None and (job_id := ids.get("job_id")):
        job = await world.work.job(viewer, job_id)
        task = job["task_id"] if job else None
    if project is None and task is not None:
        row = await world.work.task(viewer, task)
        project = row["project_id"] if row else None
    if project is None and (slug := getattr(request.arguments, "slug", None)):
        row = await world.work.project(viewer, None, slug)
        project = row["id"] if row else None
    places: list[tuple[Subject, str | None]] = [
        (("task", task or ""), task),
        (("project", project or ""), project),
    ]
    return {subject for subject, there in places if there is not None}
