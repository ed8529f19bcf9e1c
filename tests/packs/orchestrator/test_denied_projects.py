"""What access rules about projects deny reading is not listed, as if it were not there."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import insert
from tests.packs.orchestrator.calls import (
    BUILD,
    OF_ALICE,
    PA_OF_ALICE,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    refused,
    result,
)
from tests.statements import noted_statements

from toolgate.gate.principal import Principal
from toolgate.packs.orchestrator.skills.store import SYSTEM_SKILL
from toolgate.packs.orchestrator.sql import access_rules as sql_access_rules
from toolgate.packs.orchestrator.sql.tables import access_rules
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

BOTH = ["default-alice", "website"]
RULES: Mapping[str, tuple[dict[str, Any], bool]] = {
    "get": ({"resource_pattern": "db.project.get"}, True),
    "list": ({"resource_pattern": "db.project.list"}, True),
    "all": ({"resource_pattern": "*"}, True),
    "another-tool": ({"resource_pattern": "db.task.get"}, False),
    "allows": ({"resource_pattern": "*", "effect": "allow"}, False),
    "this-type": ({"resource_pattern": "*", "conditions": {"agent_types": ["pm"]}}, True),
    "another-type": ({"resource_pattern": "*", "conditions": {"agent_types": ["pa"]}}, False),
    "not-yet": (
        {"resource_pattern": "*", "conditions": {"not_before": "2126-01-01T00:00:00Z"}},
        False,
    ),
    "its-id": (
        {
            "resource_pattern": "db.project.*",
            "conditions": {"arguments": {"project_id": [WEBSITE]}},
        },
        True,
    ),
    "another-id": (
        {"resource_pattern": "db.project.*", "conditions": {"arguments": {"project_id": [BUILD]}}},
        False,
    ),
    "its-slug": (
        {"resource_pattern": "db.project.*", "conditions": {"arguments": {"slug": ["website"]}}},
        True,
    ),
    "another-slug": (
        {"resource_pattern": "db.project.*", "conditions": {"arguments": {"slug": ["x"]}}},
        False,
    ),
    "a-search": (
        {"resource_pattern": "db.project.*", "conditions": {"arguments": {"q": ["web"]}}},
        False,
    ),
}


async def deny(kit: Kit, project: str = WEBSITE, **values: Any) -> None:
    about = {"subject_type": "project", "subject_id": project, "effect": "deny"}
    await result(kit, "operator.access_rule.create", **{**about, **values})
    await kit.app.gate.switches.read_if_changed()


async def slugs(kit: Kit, who: Principal = PM_OF_ALICE, **arguments: Any) -> list[str]:
    """What is listed, page by page."""
    found, cursor = list[str](), dict[str, str]()
    while True:
        page = await result(kit, "db.project.list", who, **arguments, **cursor)
        found += [one["slug"] for one in page["entries"]]
        if "next_cursor" not in page:
            return found
        assert page["entries"], "no page is empty but the last"
        cursor = {"cursor": page["next_cursor"]}


async def names(kit: Kit, who: Principal, task: str) -> set[str]:
    page = await result(kit, "skills.list", who, task_id=task)
    return {one["name"] for one in page["entries"] if one["id"] != SYSTEM_SKILL}


@pytest.mark.parametrize("name", RULES)
async def test_a_project_that_is_not_to_be_read_is_not_listed(kit: Kit, name: str) -> None:
    values, hides = RULES[name]
    assert await slugs(kit) == BOTH
    await deny(kit, **values)
    assert await slugs(kit) == (["default-alice"] if hides else BOTH)
    assert await slugs(kit, limit=1) == (["default-alice"] if hides else BOTH)
    assert await slugs(kit, ADMIN) == ["default-alice", "default-bob", "website"]


async def test_a_denied_project_is_searched_for_in_vain_in_the_same_words(kit: Kit) -> None:
    await deny(kit, resource_pattern="*")
    denied = await result(kit, "db.project.list", PM_OF_ALICE, q="website")
    assert denied == await result(kit, "db.project.list", PM_OF_ALICE, q="no-such-project")


async def test_a_rule_about_a_project_holds_for_all_who_reach_it(kit: Kit) -> None:
    await deny(kit, OF_ALICE, resource_pattern="db.project.*")
    assert await slugs(kit) == ["website"]
    assert await slugs(kit, PA_OF_ALICE) == ["website"]
    assert await slugs(kit, PM_OF_BOB) == ["default-bob", "website"]


async def test_skills_of_a_project_that_are_not_to_be_read_are_not_listed(kit: Kit) -> None:
    new = {"task_id": BUILD, "content": "# x", "scope": "project"}
    ids = {
        name: (await result(kit, "skills.create", PM_OF_ALICE, **new, name=name))["id"]
        for name in ("first", "second")
    }
    await result(kit, "skills.create", PM_OF_BOB, task_id=SORT, content="# y", name="own")
    assert await names(kit, PM_OF_BOB, SORT) == {"first", "second", "own"}
    only = {"arguments": {"skill_id": [ids["first"].upper()]}}
    await deny(kit, resource_pattern="skills.get", conditions=only)
    assert await names(kit, PM_OF_BOB, SORT) == {"second", "own"}
    given = {"task_id": SORT, "skill_id": ids["first"]}
    assert (await refused(kit, "skills.get", PM_OF_BOB, **given))["type"] == "access_denied"
    await deny(kit, resource_pattern="skills.delete")
    assert await names(kit, PM_OF_BOB, SORT) == {"second", "own"}
    await deny(kit, resource_pattern="skills.*")
    assert await names(kit, PM_OF_BOB, SORT) == {"own"}
    assert {"first", "second"} <= await names(kit, ADMIN, BUILD)


async def test_a_rule_that_cannot_be_read_hides_its_project(kit: Kit) -> None:
    await deny(kit, OF_ALICE, resource_pattern="db.task.get")
    row = {
        "id": BUILD,
        "subject_type": "project",
        "subject_id": WEBSITE,
        "action": "mcp.tool.invoke",
        "resource_pattern": "db.task.get",
        "effect": "allow",
        "priority": 0,
        "conditions": {"no such condition": 1},
        "created_at": "2026-01-05T09:00:00.000000Z",
        "updated_at": "2026-01-05T09:00:00.000000Z",
        "updated_by": "x",
    }
    await kit.app.gate.database.write(lambda one: one.execute(insert(access_rules), row))
    assert await slugs(kit) == ["default-alice"]


async def test_where_rules_are_too_many_to_look_at_each_that_denies_hides(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_access_rules, "MAX_ABOUT_PROJECTS", 1)
    await deny(kit, OF_ALICE, resource_pattern="db.task.get", effect="allow")
    await deny(kit, WEBSITE, resource_pattern="db.task.get")
    assert await slugs(kit) == BOTH
    await deny(kit, WEBSITE, resource_pattern="db.job.get")
    assert await slugs(kit) == ["default-alice"]


async def test_rules_are_read_once_and_not_at_all_where_none_is_about_projects(kit: Kit) -> None:
    await slugs(kit)
    with noted_statements() as before:
        await slugs(kit)
    await deny(kit, resource_pattern="*")
    await slugs(kit)
    with noted_statements() as after:
        await slugs(kit)
    # The audit writes beside the calls, whenever it likes.
    assert [one for one in (*before, *after) if "orchestrator_access_rules" in one] == []
