"""Asks the access rules about a call of an agent, once its arguments are parsed and in scope."""

from collections.abc import Set as AbstractSet
from typing import Any

from toolgate.gate.access_checks import AccessRequest
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Input
from toolgate.packs.orchestrator.access import Viewer, acting_viewer, viewer_of
from toolgate.packs.orchestrator.access_rules import (
    INVOKE,
    Attempt,
    Subject,
    SubjectType,
    refusing_rule,
)
from toolgate.packs.orchestrator.pack import ForTaskOwner
from toolgate.packs.orchestrator.world import OrchestratorWorld


async def check(world: OrchestratorWorld, request: AccessRequest) -> str | None:
    """The rule that refuses the call, or None; admins are not subject to access rules."""
    _check_texts(request.arguments)
    named = _named_scopes(request.arguments)
    if named:
        request.note_ids(task_id=named.get("task"), project_id=named.get("project"))
    principal = request.principal
    if principal.agent_type is None:
        return None
    types = await world.access_rules.subject_types()
    if principal.user_id is not None:
        own = await world.access_rules.memberships_of(principal.user_id)
        request.note_memberships(own.groups, own.roles)
    subjects: set[Subject] = {
        ("system", ""),
        ("agent", principal.agent_type.value),
        ("agent", principal.id),
    }
    if not types <= {"system", "agent"}:
        subjects |= await _people_and_places(world, request, types)
    rules = await world.access_rules.about(frozenset(subjects))
    attempt = Attempt(INVOKE, request.tool, principal.agent_type, request.arguments)
    return refusing_rule(rules, attempt)


async def _people_and_places(
    world: OrchestratorWorld, request: AccessRequest, types: AbstractSet[SubjectType]
) -> set[Subject]:
    """The user who acts, with its groups, and what the call is about."""
    acting = await _acting(world, request)
    found: set[Subject] = set()
    if acting.user_id is not None:
        found.add(("user", acting.user_id))
        if "group" in types:
            groups = await world.access_rules.groups_of(acting.user_id)
            found.update(("group", one) for one in groups)
    if "task" in types or "project" in types:
        found |= await _places(world, request, acting)
    return found


async def _acting(world: OrchestratorWorld, request: AccessRequest) -> Viewer:
    """Who acts, as the tool will have it: the caller, or the owner of the task it is for."""
    viewer = viewer_of(request.principal)
    if not isinstance(request.arguments, ForTaskOwner):
        return viewer
    task = await world.work.task(viewer, request.arguments.task_id)
    return acting_viewer(request.principal, task["created_by"] if task else None)


def _check_texts(arguments: Any) -> None:
    """Refuse U+0000, which PostgreSQL does not store and SQLite does: both answer alike."""
    for name, value in arguments:
        if isinstance(value, str) and "\0" in value:
            message = f"{name} must not hold the character U+0000"
            raise InvalidArguments([Problem(name, "format", message)])


async def _places(world: OrchestratorWorld, request: AccessRequest, acting: Viewer) -> set[Subject]:
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
        projects.add(await _project_of_skill(world, acting, skill_id))
    slugs: set[str | None] = {getattr(request.arguments, "slug", None)}
    for project_id, slug in [*((one, None) for one in projects), *((None, one) for one in slugs)]:
        if project_id is not None or slug is not None:
            project = await world.work.project(acting, project_id, slug)
            places |= {("project", project["id"])} if project else set()
    return places


def _named_scopes(arguments: Input) -> dict[str, str]:
    """The scope that the arguments of a preference or a skill name."""
    given = vars(arguments)
    kind, scope_id = given.get("scope_type") or given.get("scope"), given.get("scope_id")
    return {kind: scope_id} if kind is not None and scope_id else {}


async def _project_of_skill(world: OrchestratorWorld, acting: Viewer, skill_id: str) -> str | None:
    """The project that a skill is for, if it is one that the acting user reads."""
    skill = await world.skills.get(acting, skill_id)
    return skill["scope_id"] if skill and skill["scope"] == "project" else None
