"""Asks the access rules about a call of an agent, once its arguments are parsed and in scope."""

from typing import Any

from toolgate.gate.access_checks import AccessRequest
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.orchestrator.access import acting_viewer, viewer_of
from toolgate.packs.orchestrator.access_rules import INVOKE, Attempt, Subject, refusing_rule
from toolgate.packs.orchestrator.world import OrchestratorWorld


async def check(world: OrchestratorWorld, request: AccessRequest) -> str | None:
    """The rule that refuses the call, or None; admins are not subject to access rules."""
    _check_texts(request.arguments)
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


def _check_texts(arguments: Any) -> None:
    """Refuse U+0000, which PostgreSQL does not store and SQLite does: both answer alike."""
    for name, value in arguments:
        if isinstance(value, str) and "\0" in value:
            message = f"{name} must not hold the character U+0000"
            raise InvalidArguments([Problem(name, "format", message)])


async def _places(world: OrchestratorWorld, request: AccessRequest) -> set[Subject]:
    """The tasks and projects that a call is about, as far as its caller reaches them.

    What it does not reach is left to the tool, which does not find it: a refusal would tell that
    it is there.
    """
    viewer, ids = viewer_of(request.principal), {**request.principal.bound, **request.ids}
    named = _named_scopes(request.arguments)
    tasks = {ids.get("task_id"), named.get("task")}
    projects = {ids.get("project_id"), named.get("project")}
    if job_id := ids.get("job_id"):
        job = await world.work.job(viewer, job_id)
        tasks.add(job["task_id"] if job else None)
    places: set[Subject] = set()
    for task_id in tasks - {None}:
        task = await world.work.task(viewer, task_id or "")
        if task is not None:
            places.add(("task", task["id"]))
            if task["project_id"] is not None:
                places.add(("project", task["project_id"]))
    if skill_id := getattr(request.arguments, "skill_id", None):
        projects.add(await _project_of_skill(world, request, skill_id))
    slugs: set[str | None] = {getattr(request.arguments, "slug", None)}
    for project_id, slug in [*((one, None) for one in projects), *((None, one) for one in slugs)]:
        if project_id is not None or slug is not None:
            project = await world.work.project(viewer, project_id, slug)
            places |= {("project", project["id"])} if project else set()
    return places


def _named_scopes(arguments: Any) -> dict[str, str]:
    """The scope that the arguments of a preference or a skill name."""
    kind = getattr(arguments, "scope_type", None) or getattr(arguments, "scope", None)
    scope_id = getattr(arguments, "scope_id", None)
    return {kind: scope_id} if kind is not None and scope_id else {}


async def _project_of_skill(
    world: OrchestratorWorld, request: AccessRequest, skill_id: str
) -> str | None:
    """The project that a skill is for, if it is one that the caller reads."""
    skill = await world.skills.get(acting_viewer(request.principal, None), skill_id)
    return skill["scope_id"] if skill and skill["scope"] == "project" else None
