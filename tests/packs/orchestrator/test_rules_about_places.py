"""Rules about places and arguments: what a call is about in truth, however it says so."""

from functools import partial
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    OF_ALICE,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    PUBLISH,
    WEBSITE,
    result,
)

from toolgate.gate.principal import Principal
from toolgate.packs.orchestrator.access_rules import EVERYTHING, NO_RULE
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

SKILL = {"task_id": BUILD, "content": "# x"}
OF_PROJECT = {**SKILL, "scope": "project"}
PAGE = {"task_id": BUILD, "path": "a.html", "content_bytes_base64": "YQ=="}


async def rule(kit: Kit, **values: Any) -> None:
    await result(kit, "operator.access_rule.create", **values)
    await kit.app.gate.switches.read_if_changed()


async def allow_only(kit: Kit, *subjects: tuple[str, str]) -> None:
    await result(kit, "operator.access_rule.delete", rule_id=EVERYTHING)
    for subject_type, subject_id in subjects:
        about = {"subject_type": subject_type, "subject_id": subject_id}
        await rule(kit, effect="allow", resource_pattern="*", **about)


async def is_allowed(kit: Kit, tool: str, caller: Principal, /, **arguments: Any) -> bool:
    outcome = await kit.call(tool, caller, **arguments)
    if outcome.error is not None:
        assert outcome.body["error"]["type"] == "access_denied", outcome.body
    return outcome.error is None


async def test_a_rule_that_allows_one_project_does_not_let_into_another(kit: Kit) -> None:
    made = {
        name: (await result(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, scope_id=name))["id"]
        for name in (WEBSITE, OF_ALICE)
    }
    await allow_only(kit, ("project", WEBSITE), ("task", BUILD))
    for caller in (PM_OF_ALICE, PM):
        for project, allowed in ((WEBSITE, True), (OF_ALICE, False)):
            named: dict[str, Any] = {"task_id": BUILD, "skill_id": made[project]}
            moved = {"task_id": BUILD, "skill_id": made[WEBSITE], "scope": "project"}
            for tool, arguments in (
                ("skills.create", {**OF_PROJECT, "scope_id": project}),
                ("skills.get", named),
                ("skills.update", {**named, "name": "N"}),
                ("skills.update", {**moved, "scope_id": project}),
            ):
                assert await is_allowed(kit, tool, caller, **arguments) is allowed, (tool, project)
    row = (await kit.audit_rows())[-1]
    assert (row["decision"], row["rule"]) == ("deny", NO_RULE)


async def test_every_place_is_allowed_by_a_rule_of_its_own(kit: Kit) -> None:
    await allow_only(kit, ("project", WEBSITE), ("project", OF_ALICE))
    assert await is_allowed(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, scope_id=OF_ALICE)
    assert await is_allowed(kit, "db.job.get", PM_OF_ALICE, job_id=BUILDING)
    assert not await is_allowed(kit, "db.project.list", PM_OF_ALICE), "it is about no place"


@pytest.mark.parametrize("named", [{"scope_id": WEBSITE}, {}], ids=["named", "left-out"])
async def test_a_rule_about_a_task_does_not_allow_what_is_for_its_project(
    kit: Kit, named: dict[str, str]
) -> None:
    await allow_only(kit, ("task", BUILD))
    assert await is_allowed(kit, "skills.create", PM_OF_ALICE, **SKILL)
    assert not await is_allowed(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, **named)
    assert await is_allowed(kit, "db.task.get", PM_OF_ALICE, task_id=BUILD)
    assert not await is_allowed(kit, "db.task.get", PM_OF_ALICE, task_id=PUBLISH)


async def test_a_rule_about_the_caller_allows_it_everywhere_but_where_it_is_denied(
    kit: Kit,
) -> None:
    await allow_only(kit, ("user", "alice"))
    assert await is_allowed(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, scope_id=OF_ALICE)
    assert not await is_allowed(kit, "db.task.get", PM_OF_BOB, task_id=BUILD)
    about = {"subject_type": "project", "subject_id": OF_ALICE}
    await rule(kit, effect="deny", resource_pattern="*", **about)
    assert not await is_allowed(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, scope_id=OF_ALICE)


DENIED: dict[str, tuple[dict[str, list[Any]], str, dict[str, Any]]] = {
    "media-type": ({"content_type": ["text/html"]}, "artifact.put", {"content_type": "text/html"}),
    "capitals": ({"content_type": ["text/html"]}, "artifact.put", {"content_type": "TEXT/HTML"}),
    "in-the-rule": ({"content_type": ["Text/HTML"]}, "artifact.put", {"content_type": "text/html"}),
    "parameter": (
        {"content_type": ["text/html"]},
        "artifact.put",
        {"content_type": "Text/html;x=1"},
    ),
    "its-parameter": (
        {"content_type": ["text/html;x=1"]},
        "artifact.put",
        {"content_type": "text/HTML; X=1"},
    ),
    "tasks-project": ({"scope_id": [WEBSITE]}, "skills.create", {"scope": "project"}),
    "own-user": ({"scope_id": ["alice"]}, "skills.create", {}),
    "slug": ({"project_id": [WEBSITE.upper()]}, "db.project.get", {"slug": "website"}),
    "id": ({"slug": ["website"]}, "db.project.get", {"project_id": WEBSITE.upper()}),
}
"""Conditions of a rule, and a call that they are about."""
OTHER: dict[str, dict[str, Any]] = {
    "artifact.put": {"content_type": "text/plain; x=1"},
    "db.project.get": {"slug": "default-alice"},
    "skills.create": {"scope": "project", "scope_id": OF_ALICE},
}
"""A call that they are not about."""
BESIDE: dict[str, dict[str, Any]] = {
    "artifact.put": PAGE,
    "skills.create": SKILL,
    "db.project.get": {},
}


@pytest.mark.parametrize("name", DENIED)
async def test_conditions_are_about_what_the_tool_will_use(kit: Kit, name: str) -> None:
    arguments, tool, given = DENIED[name]
    conditions = {"arguments": arguments}
    await rule(kit, effect="deny", resource_pattern=tool, conditions=conditions)
    assert not await is_allowed(kit, tool, PM_OF_ALICE, **BESIDE[tool], **given)
    assert await is_allowed(kit, tool, PM_OF_ALICE, **BESIDE[tool], **OTHER[tool])


async def test_a_skill_of_a_denied_project_neither_stays_nor_leaves_nor_comes(kit: Kit) -> None:
    made = await result(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT)
    own = await result(kit, "skills.create", PM_OF_ALICE, **SKILL)
    conditions = {"arguments": {"scope_id": [WEBSITE]}}
    await rule(kit, effect="deny", resource_pattern="skills.*", conditions=conditions)
    there = {"task_id": BUILD, "skill_id": made["id"]}
    assert not await is_allowed(kit, "skills.update", PM_OF_ALICE, **there, name="N")
    assert not await is_allowed(kit, "skills.update", PM, **there, scope="project")
    assert not await is_allowed(kit, "skills.update", PM_OF_ALICE, **there, scope="user")
    elsewhere = {**there, "scope": "project", "scope_id": OF_ALICE}
    assert not await is_allowed(kit, "skills.update", PM_OF_ALICE, **elsewhere)
    mine = {"task_id": BUILD, "skill_id": own["id"]}
    assert not await is_allowed(kit, "skills.update", PM_OF_ALICE, **mine, scope="project")
    assert await is_allowed(kit, "skills.update", PM_OF_ALICE, **mine, scope="user")


async def test_a_skill_is_moved_where_rules_allow_it_before_and_after(kit: Kit) -> None:
    made = await result(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT)
    moved = {"task_id": BUILD, "skill_id": made["id"], "scope": "user"}
    await result(kit, "operator.access_rule.delete", rule_id=EVERYTHING)
    allow: dict[str, Any] = {"effect": "allow", "resource_pattern": "skills.update"}
    await rule(kit, **allow, conditions={"arguments": {"scope": ["user"]}})
    assert not await is_allowed(kit, "skills.update", PM_OF_ALICE, **moved)
    await rule(kit, **allow, conditions={"arguments": {"scope": ["project"]}})
    assert await is_allowed(kit, "skills.update", PM_OF_ALICE, **moved)


FILTERS = {"scope": ("group", "user"), "owner": ("bob", "alice")}
"""Filters of the list of skills: a value that a rule is about, and one that it is not about."""


@pytest.mark.parametrize("name", FILTERS)
async def test_a_filter_that_is_left_out_has_every_value_for_a_rule_that_denies(
    kit: Kit, name: str
) -> None:
    denied, other = FILTERS[name]
    about = {"subject_type": "user", "subject_id": "alice", "resource_pattern": "skills.*"}
    await rule(kit, effect="deny", **about, conditions={"arguments": {name: [denied]}})
    listed = partial(is_allowed, kit, "skills.list", task_id=BUILD)
    assert not await listed(PM_OF_ALICE, **{name: denied})
    assert not await listed(PM_OF_ALICE)
    assert await listed(PM_OF_ALICE, **{name: other})
    assert await listed(PM_OF_BOB)


@pytest.mark.parametrize("name", FILTERS)
async def test_a_filter_that_is_left_out_has_no_value_for_a_rule_that_allows(
    kit: Kit, name: str
) -> None:
    allowed, other = FILTERS[name]
    await result(kit, "operator.access_rule.delete", rule_id=EVERYTHING)
    conditions = {"arguments": {name: [allowed]}}
    await rule(kit, effect="allow", resource_pattern="skills.list", conditions=conditions)
    listed = partial(is_allowed, kit, "skills.list", PM_OF_ALICE, task_id=BUILD)
    assert await listed(**{name: allowed})
    assert not await listed()
    assert not await listed(**{name: other})


async def test_a_list_without_filter_leaves_out_projects_where_the_filter_is_denied(
    kit: Kit,
) -> None:
    made = await result(kit, "skills.create", PM_OF_ALICE, **OF_PROJECT, scope_id=OF_ALICE)
    about = {"subject_type": "project", "subject_id": OF_ALICE, "resource_pattern": "skills.list"}
    conditions = {"arguments": {"scope": ["project"]}}
    await rule(kit, effect="deny", **about, conditions=conditions)
    for given in ({"scope": "project"}, {}):
        listed = await result(kit, "skills.list", PM_OF_ALICE, task_id=BUILD, **given)
        assert made["id"] not in [one["id"] for one in listed["entries"]], given


async def test_a_condition_about_a_project_out_of_reach_tells_nothing(kit: Kit) -> None:
    conditions = {"arguments": {"project_id": [OF_ALICE]}}
    await rule(kit, effect="deny", resource_pattern="db.project.get", conditions=conditions)
    foreign = await kit.call("db.project.get", PM_OF_BOB, slug="default-alice")
    absent = await kit.call("db.project.get", PM_OF_BOB, slug="default-eve")
    assert foreign.body == absent.body


async def test_the_media_type_of_an_artifact_is_kept_in_lower_case(kit: Kit) -> None:
    given = {**PAGE, "content_type": "Text/HTML; charset=UTF-8"}
    kept = await result(kit, "artifact.put", PM_OF_ALICE, **given)
    assert kept["content_type"] == "text/html; charset=UTF-8"
