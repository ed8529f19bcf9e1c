"""What would restrict nothing is refused, and each refusal says what to do."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import PM_OF_ALICE, refused, result

from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

RULE: dict[str, Any] = {"effect": "deny", "resource_pattern": "db.task.*"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"conditions": {"arguments": {"status": ["done"]}}},
            "conditions.arguments.status is never 'done': it is one of pending, running, ",
        ),
        (
            {"conditions": {"not_after": "2020-01-01T00:00:00Z"}},
            "conditions.not_after has passed, so the rule would never apply",
        ),
        ({"subject_type": "user"}, "subject_id is required where subject_type is user"),
        ({"subject_type": "agent"}, "subject_id is required where subject_type is agent"),
        ({"resource_pattern": "artefact.*"}, "fits no tool. Did you mean artifact.*?"),
    ],
    ids=["no such value", "in the past", "no user", "no agent", "a misspelt group"],
)
async def test_a_rule_that_would_never_apply_is_refused(
    kit: Kit, given: dict[str, Any], told: str
) -> None:
    error = await refused(kit, "operator.access_rule.create", **{**RULE, **given})
    assert told in error["message"]


async def test_a_value_that_one_of_the_tools_takes_is_taken(kit: Kit) -> None:
    conditions = {"arguments": {"status": ["completed"], "task_id": ["anything"]}}
    await result(kit, "operator.access_rule.create", **RULE, conditions=conditions)


async def test_the_same_rule_is_not_stored_twice(kit: Kit) -> None:
    made = await result(kit, "operator.access_rule.create", **RULE)
    error = await refused(kit, "operator.access_rule.create", **RULE, priority=5)
    assert error["type"] == "conflict"
    assert f"There is such a rule already, {made['id']} (priority 0)." in error["message"]
    narrowed = {"conditions": {"agent_types": ["pa"]}}
    await result(kit, "operator.access_rule.create", **RULE, **narrowed)


async def test_a_preference_switches_no_tool(kit: Kit) -> None:
    given = {"scope_type": "user", "scope_id": "alice", "value": ["x"], "value_type": "array"}
    error = await refused(kit, "db.preference.create", key="mcp.tools.disabled", **given)
    assert "key mcp.tools.disabled is a system setting" in error["message"]
    assert "db.system_setting.create" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "db.system_setting.create",
            {"key": "a.b", "value": 1, "value_type": "number"},
            "Use db.preference.* with the scope of your user",
        ),
        (
            "db.preference.update",
            {"scope_type": "user", "scope_id": "alice", "key": "a", "value": 1, "version": 1},
            "Did you mean 'expected_version'?",
        ),
        ("db.preference.list", {"scope": "user"}, "Did you mean 'scope_type'?"),
    ],
    ids=["settings", "version", "scope"],
)
async def test_an_agent_is_told_what_to_use(
    kit: Kit, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert told in (await refused(kit, tool, PM_OF_ALICE, **arguments))["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "db.preference.list",
            {},
            "scope_type is required: one of system, user, group, project, task",
        ),
        (
            "worker_node.acknowledge_config",
            {"node_slug": "worker-01", "config_version": "x", "status": "applied"},
            "config_version must be the one that worker_node.get_config gave",
        ),
        (
            "db.system_setting.create",
            {"key": "a.b", "value": None, "value_type": "object"},
            "value must be of value_type object; it is null. To unset it, delete it",
        ),
    ],
    ids=["choices", "a version", "null"],
)
async def test_what_is_missing_or_wrong_is_told_with_what_would_be_right(
    kit: Kit, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert (await refused(kit, tool, **arguments))["message"] == told


async def test_an_example_is_of_the_same_kind(kit: Kit) -> None:
    error = await refused(kit, "operator.project.create", slug="A B", display_name="x")
    assert error["message"].endswith("such as newsletter")
