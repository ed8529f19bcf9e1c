"""What applies to everybody is changed by admins and by managers of the whole system alone."""

from dataclasses import replace
from typing import Any

import pytest
from tests.packs.orchestrator.calls import BUILD, PM, PM_OF_ALICE, WEBSITE, refused, result

from toolgate.gate.principal import Principal
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

SYSTEM = {"scope_type": "system"}
VALUE = {"value": "Be brief.", "value_type": "string"}
NARROW = {
    "of a user": PM_OF_ALICE,
    "bound to a task": replace(PM, bound={"task_id": BUILD}),
    "bound to a project": replace(PM, bound={"project_id": WEBSITE}),
    "of a user, bound to a task": replace(PM_OF_ALICE, bound={"task_id": BUILD}),
}
TOOLS: dict[str, dict[str, Any]] = {
    "db.preference.create": {**SYSTEM, "key": "custom.new", **VALUE},
    "db.preference.update": {**SYSTEM, "key": "custom.there", **VALUE},
    "db.preference.delete": {**SYSTEM, "key": "custom.there"},
    "db.system_setting.create": {"key": "models.new", **VALUE},
    "db.system_setting.update": {"key": "models.there", **VALUE},
    "db.system_setting.delete": {"key": "models.there"},
}


async def store(kit: Kit) -> None:
    await result(kit, "db.preference.create", **SYSTEM, key="custom.there", **VALUE)
    await result(kit, "db.system_setting.create", key="models.there", **VALUE)


@pytest.mark.parametrize("caller", NARROW.values(), ids=NARROW)
async def test_a_manager_of_a_user_or_task_changes_nothing_of_everybodys(
    kit: Kit, caller: Principal
) -> None:
    await store(kit)
    for tool, arguments in TOOLS.items():
        error = await refused(kit, tool, caller, **arguments)
        assert error["type"] == "access_denied", tool
        assert error["message"].startswith("What is the whole system's can be changed by an admin")


@pytest.mark.parametrize("caller", [ADMIN, PM], ids=["admin", "manager of the system"])
async def test_an_admin_and_a_manager_of_the_whole_system_change_it(
    kit: Kit, caller: Principal
) -> None:
    await store(kit)
    for tool, arguments in TOOLS.items():
        await result(kit, tool, caller, **arguments)


async def test_everybody_reads_it_and_changes_what_is_its_own(kit: Kit) -> None:
    await store(kit)
    there = {**SYSTEM, "key": "custom.there"}
    assert (await result(kit, "db.preference.get", PM_OF_ALICE, **there))["value"] == "Be brief."
    assert await result(kit, "db.system_setting.get", PM_OF_ALICE, key="models.there")
    own = {"scope_type": "user", "scope_id": "alice", "key": "custom.new"}
    assert await result(kit, "db.preference.create", PM_OF_ALICE, **own, **VALUE)
