"""Asks the access rules about a call of an agent, once its arguments are parsed and in scope."""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from toolgate.gate.access_checks import AccessRequest
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Input
from toolgate.packs.orchestrator.access import Viewer, acting_viewer, viewer_of
from toolgate.packs.orchestrator.access_rules import (
    INVOKE,
    NAMED,
    NO_NAMES,
    AccessRule,
    Attempt,
    Subject,
    SubjectType,
    named_in_conditions,
    refusing_rule,
)
from toolgate.packs.orchestrator.pack import UUID, ForTaskOwner, Paged
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.world import OrchestratorWorld

CALLERS_ALONE: AbstractSet[SubjectType] = {"system", "agent"}
"""Subjects that are known without a look at the records."""
WITH_ANOTHER_NAME: AbstractSet[str] = {"project_id", "slug", "scope", "scope_id"}
"""Arguments that can be left out, or given in another way, and mean the same."""
NO_PLACES: Sequence[frozenset[Subject]] = ()


async def check(world: OrchestratorWorld, request: AccessRequest) -> str | None:
    """The rule that refuses the call, or None; admins are not subject to access rules."""
    _check_texts(request.arguments)
    named = _named_scopes(request.arguments)
    # What does not have the form of an id could be anything, and the audit keeps it for long.
    ids = {kind: one.lower() for kind, one in named.items() if UUID.fullmatch(one)}
    if ids:
        request.note_ids(task_id=ids.get("task"), project_id=ids.get("project"))
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
    places = NO_PLACES
    if not types <= CALLERS_ALONE:
        acting = await _acting(world, request)
        subjects |= await _people(world, acting, types)
        if "task" in types or "project" in types:
            places = await _places(world, request, acting)
    rules = await world.access_rules.about(frozenset(subjects.union(*places)))
    attempt = Attempt(INVOKE, request.tool, principal.agent_type, _given(request), places)
    if compared := named_in_conditions(rules, request.tool):
        return await _refusing_by_arguments(world, request, rules, attempt, compared)
    return refusing_rule(rules, attempt)


async def describe(world: OrchestratorWorld, rule: str) -> dict[str, str] | None:
    """What an access rule says, and how to end it."""
    id = rule.removeprefix(NAMED)
    found = await world.administration.page("access_rule", {"id": id}, None, 1)
    if id == rule or not found.rows:
        return None
    row = found.rows[0]
    return {
        "effect": row["effect"],
        "subject": f"{row['subject_type']} {row['subject_id']}".strip(),
        "pattern": row["resource_pattern"],
        "conditions": json.dumps(row["conditions"] or {}),
        "to delete it": f"toolgate call operator.access_rule.delete rule_id={id}",
    }


async def _people(
    world: OrchestratorWorld, acting: Viewer, types: AbstractSet[SubjectType]
) -> set[Subject]:
    """The user who acts, with its groups."""
    if acting.user_id is None:
        return set()
    found: set[Subject] = {("user", acting.user_id)}
    if "group" in types:
        found.update(("group", one) for one in await world.access_rules.groups_of(acting.user_id))
    return found


async def _acting(world: OrchestratorWorld, request: AccessRequest) -> Viewer:
    """Who acts, as the tool will have it: the caller, or the owner of the task it is for."""
    if not isinstance(request.arguments, ForTaskOwner):
        return viewer_of(request.principal)
    task = await _task_of(world, request)
    return acting_viewer(request.principal, task["created_by"] if task else None)


async def _task_of(world: OrchestratorWorld, request: AccessRequest) -> Row | None:
    """The task that a call is for, if its caller reaches it."""
    return await world.work.task(viewer_of(request.principal), request.arguments.task_id)


def _check_texts(arguments: Any) -> None:
    """Refuse U+0000, which PostgreSQL does not store and SQLite does: both answer alike."""
    for name, value in arguments:
        if isinstance(value, str) and "\0" in value:
            message = f"{name} must not hold the character U+0000"
            raise InvalidArguments([Problem(name, "format", message)])


async def _places(
    world: OrchestratorWorld, request: AccessRequest, acting: Viewer
) -> Sequence[frozenset[Subject]]:
    """The tasks and projects that a call is about, as far as its caller reaches them.

    A task comes with its project: who may do something there may do it with its tasks. What is not
    reached is left to the tool, which does not find it: a refusal would tell that it is there.
    """
    viewer, ids = viewer_of(request.principal), {**request.principal.bound, **request.ids}
    named = _named_scopes(request.arguments)
    tasks = {ids.get("task_id"), named.get("task")}
    projects = {ids.get("project_id"), named.get("project")}
    if job_id := ids.get("job_id"):
        job = await world.work.job(viewer, job_id)
        tasks.add(job["task_id"] if job else None)
    places: set[frozenset[Subject]] = set()
    for task_id in tasks - {None}:
        task = await world.work.task(viewer, task_id or "")
        if task is not None:
            of_task: set[Subject] = {("task", task["id"])}
            if task["project_id"] is not None:
                of_task.add(("project", task["project_id"]))
                projects |= {task["project_id"]} if _is_for_tasks_project(request) else set()
            places.add(frozenset(of_task))
    if skill_id := getattr(request.arguments, "skill_id", None):
        skill = await world.skills.get(acting, skill_id)
        projects.add(skill["scope_id"] if skill and skill["scope"] == "project" else None)
    slugs: set[str | None] = {getattr(request.arguments, "slug", None)}
    for project_id, slug in [*((one, None) for one in projects), *((None, one) for one in slugs)]:
        if project_id is not None or slug is not None:
            project = await world.work.project(acting, project_id, slug)
            places |= {frozenset[Subject]({("project", project["id"])})} if project else set()
    return [*places]


def _named_scopes(arguments: Input) -> dict[str, str]:
    """The scope that the arguments of a preference or a skill name."""
    given = vars(arguments)
    kind, scope_id = given.get("scope_type") or given.get("scope"), given.get("scope_id")
    return {kind: scope_id} if kind is not None and scope_id else {}


def _given(request: AccessRequest) -> dict[str, Any]:
    arguments: Input = request.arguments
    return vars(arguments)


def _is_for_tasks_project(request: AccessRequest) -> bool:
    """Whether a skill is for the project of the task that the call names."""
    given = _given(request)
    return given.get("scope") == "project" and given.get("scope_id", "") is None


async def _refusing_by_arguments(
    world: OrchestratorWorld,
    request: AccessRequest,
    rules: Sequence[AccessRule],
    attempt: Attempt,
    compared: AbstractSet[str],
) -> str | None:
    """The rule that refuses an attempt whose arguments the rules look at."""
    is_list = isinstance(request.arguments, Paged)
    left_out = request.arguments.filters_left_out() if is_list else NO_NAMES
    used = [attempt.arguments]
    if WITH_ANOTHER_NAME & compared:
        used = await _as_used(world, request)
    for arguments in used:
        as_used = replace(attempt, arguments=arguments, any_value=left_out)
        if (rule := refusing_rule(rules, as_used)) is not None:
            return rule
    return None


async def _as_used(world: OrchestratorWorld, request: AccessRequest) -> Sequence[Mapping[str, Any]]:
    """The arguments with what the tool will use where they leave it out or name it otherwise.

    They are several where the call moves a skill: what the rules say holds before and after.
    """
    given = _given(request)
    if "slug" in given:
        return [{**given, **await _project_named(world, request)}]
    if isinstance(request.arguments, ForTaskOwner) and "scope_id" in given:
        return [{**given, **scope} for scope in await _scopes_of_skill(world, request)]
    return [given]


async def _project_named(world: OrchestratorWorld, request: AccessRequest) -> Mapping[str, str]:
    """A project by its id and its slug, if the caller reaches it."""
    given = _given(request)
    viewer = viewer_of(request.principal)
    project = await world.work.project(viewer, given["project_id"], given["slug"])
    return {"project_id": project["id"], "slug": project["slug"]} if project else {}


async def _scopes_of_skill(
    world: OrchestratorWorld, request: AccessRequest
) -> Sequence[Mapping[str, Any]]:
    """Whom a skill is for before the call, if the caller reaches it, and after."""
    given = _given(request)
    acting = await _acting(world, request)
    skill = await world.skills.get(acting, given["skill_id"]) if "skill_id" in given else None
    before = [{"scope": skill["scope"], "scope_id": skill["scope_id"]}] if skill else []
    if given["scope"] is None:
        return before or [{}]
    return [*before, await _new_scope(world, request, acting)]


async def _new_scope(
    world: OrchestratorWorld, request: AccessRequest, acting: Viewer
) -> Mapping[str, Any]:
    """The id that a skill's new scope will have where the call leaves it out."""
    given = _given(request)
    if given["scope_id"] is not None:
        return {}
    if given["scope"] == "user":
        return {"scope_id": acting.user_id}
    task = await _task_of(world, request) if given["scope"] == "project" else None
    return {"scope_id": task["project_id"]} if task else {}
