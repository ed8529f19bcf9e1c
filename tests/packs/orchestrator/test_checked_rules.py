"""Access rules that could never apply are refused, new ones and changed ones."""

import pytest
from tests.packs.orchestrator.calls import refused, result

from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


async def test_a_rule_that_would_never_apply_is_refused(kit: Kit) -> None:
    between = {"not_before": "2026-06-30T00:00:00Z", "not_after": "2026-01-01T00:00:00Z"}
    rule = {"effect": "deny", "resource_pattern": "db.*"}
    never = "conditions.not_before is after not_after, so the rule would never apply"
    error = await refused(kit, "operator.access_rule.create", **rule, conditions=between)
    assert (error["type"], never in error["message"]) == ("invalid_arguments", True)
    made = await result(kit, "operator.access_rule.create", **rule)
    change = {"rule_id": made["id"], "conditions": between}
    error = await refused(kit, "operator.access_rule.update", **change)
    assert never in error["message"]


async def test_a_changed_rule_has_no_conditions_that_can_never_hold(kit: Kit) -> None:
    only_it = {"arguments": {"status": ["canceled"]}}
    new = {"effect": "deny", "resource_pattern": "db.task.*", "conditions": only_it}
    made = await result(kit, "operator.access_rule.create", **new)
    change = {"rule_id": made["id"], "resource_pattern": "db.project.*"}
    error = await refused(kit, "operator.access_rule.update", **change)
    assert "no tool of this pattern takes an argument status" in error["message"]
    changed = await result(kit, "operator.access_rule.update", **change, conditions={})
    assert (changed["resource_pattern"], changed["conditions"]) == ("db.project.*", {})


async def test_the_pattern_that_the_description_names_is_taken(kit: Kit) -> None:
    tool = kit.app.gate.catalogue.find("operator.access_rule.create")
    assert tool is not None
    description = tool.input_schema["properties"]["resource_pattern"]["description"]
    example = description.split("such as `")[1].split("`")[0]
    await result(kit, "operator.access_rule.create", effect="deny", resource_pattern=example)
