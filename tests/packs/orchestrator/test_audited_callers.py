"""Which groups and roles an agent's row has in the audit, which ids, and what that costs."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    WORKER,
    refused,
    result,
)
from tests.statements import noted_statements

from toolgate.gate.access_checks import MAX_NAMES, AccessRequest
from toolgate.gate.principal import Principal
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

READ = "db.preference.list"
EVERYBODYS = {"scope_type": "system"}


async def last_row(kit: Kit) -> dict[str, Any]:
    return (await kit.audit_rows())[-1]


async def memberships(kit: Kit, who: Principal) -> tuple[str, str]:
    await result(kit, READ, who, **EVERYBODYS)
    row = await last_row(kit)
    return row["group_ids"], row["role_names"]


# Groups and roles ---------------------------------------------------------------------------


async def test_the_row_of_an_agent_has_the_groups_and_roles_of_its_user(kit: Kit) -> None:
    assert await memberships(kit, PM_OF_BOB) == ("designers", "viewer")
    for group in ("b-team", "a-team"):
        named = {"group_id": group, "display_name": group}
        await result(kit, "operator.group.create", **named)
        await result(kit, "operator.group.add_member", group_id=group, user_id="bob")
    holder = {"project_id": WEBSITE, "subject_type": "group", "subject_id": "a-team"}
    await result(kit, "operator.role_binding.set", **holder, role="member")
    await kit.app.gate.switches.read_if_changed()
    assert await memberships(kit, PM_OF_BOB) == ("a-team,b-team,designers", "member,viewer")


async def test_what_a_user_has_no_more_is_no_more_in_the_rows_to_come(kit: Kit) -> None:
    assert await memberships(kit, PM_OF_BOB) == ("designers", "viewer")
    await result(kit, "operator.group.remove_member", group_id="designers", user_id="bob")
    await kit.app.gate.switches.read_if_changed()
    assert await memberships(kit, PM_OF_BOB) == ("", "")
    holder = {"project_id": WEBSITE, "subject_type": "user", "subject_id": "bob"}
    await result(kit, "operator.role_binding.set", **holder, role="operator")
    await kit.app.gate.switches.read_if_changed()
    assert await memberships(kit, PM_OF_BOB) == ("", "operator")
    await result(kit, "operator.role_binding.remove", **holder)
    await kit.app.gate.switches.read_if_changed()
    assert await memberships(kit, PM_OF_BOB) == ("", "")


async def test_who_has_no_user_has_no_groups_and_an_admin_its_own_role(kit: Kit) -> None:
    assert await memberships(kit, PM) == ("", "")
    assert await memberships(kit, ADMIN) == ("", "admin")


async def test_writes_and_refusals_have_them_too(kit: Kit) -> None:
    value = {"key": "custom.a", "value": "x", "value_type": "string"}
    mine = {"scope_type": "user", "scope_id": "bob"}
    await result(kit, "db.preference.create", PM_OF_BOB, **mine, **value)
    assert (await last_row(kit))["group_ids"] == "designers"
    await refused(kit, "db.preference.create", PM_OF_BOB, **EVERYBODYS, **value)
    assert (await last_row(kit))["group_ids"] == "designers"


async def test_a_call_gains_no_statement_once_its_user_is_known(kit: Kit) -> None:
    await result(kit, READ, PM_OF_BOB, **EVERYBODYS)
    await result(kit, READ, PM, **EVERYBODYS)
    with noted_statements() as of_nobody:
        await result(kit, READ, PM, **EVERYBODYS)
    with noted_statements() as of_bob:
        await result(kit, READ, PM_OF_BOB, **EVERYBODYS)
    assert of_bob == of_nobody


def test_a_row_has_a_limited_number_of_groups() -> None:
    request = AccessRequest(PM_OF_BOB, READ, None, {})
    request.note_memberships([f"g{number}" for number in range(MAX_NAMES + 1)], [])
    *groups, last = request.ids["group_ids"].split(",")
    assert (len(groups), groups[0], last) == (MAX_NAMES, "g0", "…")
    assert "role_names" not in request.ids, "what is not known stays as the caller has it"


# Ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "scope", "task", "project"),
    [
        (PM_OF_ALICE, {"scope_type": "task", "scope_id": BUILD}, BUILD, None),
        (PM_OF_ALICE, {"scope_type": "project", "scope_id": WEBSITE}, None, WEBSITE),
        (PM_OF_ALICE, {"scope_type": "user", "scope_id": "alice"}, None, None),
        (PM_OF_ALICE, EVERYBODYS, None, None),
        (ADMIN, {"scope_type": "task", "scope_id": SORT}, SORT, None),
    ],
    ids=["task", "project", "user", "system", "admin"],
)
async def test_the_scope_of_a_preference_is_in_the_row(
    kit: Kit, who: Principal, scope: dict[str, Any], task: str | None, project: str | None
) -> None:
    await kit.call(READ, who, **scope)
    row = await last_row(kit)
    assert (row["task_id"], row["project_id"]) == (task, project)


async def test_the_id_that_was_tried_is_named_instead_of_the_bound_one(kit: Kit) -> None:
    await refused(kit, "skills.list", WORKER, task_id=SORT)
    assert (await last_row(kit))["task_id"] == SORT
    await kit.call("db.preference.get", PM_OF_BOB, scope_type="task", scope_id="x" * 200, key="a.b")
    # What does not have the form of an id may be anything, and is not kept.
    assert (await last_row(kit))["task_id"] is None
