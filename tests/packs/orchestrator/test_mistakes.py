"""Mistakes of one kind are told alike, whichever tool they were made with."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import BUILD, ID, WEBSITE, refused

from toolgate.gate.dialects import JSON_RPC
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio
DATABASES = ["sqlite"]
"""They are found in the arguments."""

MISSING, FORMAT, OTHER = -32301, -32302, -32300
SETTING = {"key": "a.b", "value": 1, "value_type": "number"}
EMPTY: dict[str, tuple[str, dict[str, Any]]] = {
    "q": ("db.project.list", {}),
    "slug": ("db.project.get", {"project_id": WEBSITE}),
    "topic": ("help.get", {"task_id": BUILD}),
    "cursor": ("db.system_setting.list", {}),
    "reason": ("db.system_setting.create", SETTING),
    "name": ("skills.create", {"task_id": BUILD, "content": "x"}),
}
MISTAKES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "absent": (MISSING, "db.task.get", {}),
    "empty": (MISSING, "skills.create", {"task_id": BUILD, "content": ""}),
    "no-scope": (MISSING, "db.preference.list", {"scope_type": "user"}),
    "no-group": (MISSING, "skills.create", {"task_id": BUILD, "content": "x", "scope": "group"}),
    "neither": (MISSING, "db.project.get", {}),
    "none-of-three": (MISSING, "skills.update", {"task_id": BUILD, "skill_id": ID.format("d1")}),
    "uuid": (FORMAT, "db.task.get", {"task_id": "x"}),
    "type": (FORMAT, "db.task.get", {"task_id": 5}),
    "key": (FORMAT, "db.system_setting.get", {"key": "A B"}),
    "path": (FORMAT, "artifact.get", {"task_id": BUILD, "path": "../x"}),
    "too-much": (OTHER, "db.preference.list", {"scope_type": "system", "scope_id": "x"}),
    "both": (OTHER, "db.project.get", {"project_id": WEBSITE, "slug": "website"}),
    "both-for-help": (OTHER, "help.get", {"task_id": BUILD, "topic": "tasks", "path": "x"}),
    "id-of-global": (
        OTHER,
        "skills.create",
        {"task_id": BUILD, "content": "x", "scope": "global", "scope_id": "bob"},
    ),
    "id-alone": (
        OTHER,
        "skills.update",
        {"task_id": BUILD, "skill_id": ID.format("d1"), "name": "x", "scope_id": "bob"},
    ),
    "optional-empty": (OTHER, "db.project.list", {"q": ""}),
    "range": (OTHER, "db.project.list", {"limit": 0}),
    "option": (OTHER, "db.task.update_status", {"task_id": BUILD, "status": "x"}),
}


@pytest.mark.parametrize("name", EMPTY)
async def test_an_optional_argument_that_is_empty_is_not_called_required(
    kit: Kit, name: str
) -> None:
    tool, arguments = EMPTY[name]
    error = await refused(kit, tool, **arguments, **{name: ""})
    assert error["type"] == "invalid_arguments"
    assert error["message"] == f"{name} must not be empty"


async def test_a_required_argument_that_is_empty_is_required(kit: Kit) -> None:
    error = await refused(kit, "skills.create", task_id=BUILD, content="")
    assert error["message"] == "content is required"


@pytest.mark.parametrize("name", MISTAKES)
async def test_a_kind_of_mistake_has_one_code(kit: Kit, name: str) -> None:
    code, tool, arguments = MISTAKES[name]
    outcome = await kit.call(tool, **arguments)
    assert outcome.error is not None
    assert JSON_RPC.failure(outcome.error, False)["code"] == code
