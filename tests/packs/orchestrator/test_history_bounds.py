"""The history: nobody pushes out what others changed last, and its bound holds in every scope."""

from typing import Any

import pytest
from sqlalchemy import func, select
from tests.packs.orchestrator.calls import BUILD, PM, PM_OF_ALICE, WEBSITE, refused, result

from toolgate.packs.orchestrator.sql import record_history
from toolgate.packs.orchestrator.sql.tables import history, history_sizes
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

BOUND = 20_000
LONG = {"value": "x" * 3_000, "value_type": "string"}


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_history, "KEPT_CHARACTERS", BOUND)


def text(value: str) -> dict[str, str]:
    return {"value": value, "value_type": "string"}


async def sizes(kit: Kit) -> dict[tuple[str, str, bool], tuple[int, int]]:
    """What each history holds that others may push out, and what was counted of it."""
    ledger = (history.c.scope_type, history.c.scope_id, history.c.reserved)
    there = select(*ledger, func.sum(history.c.size)).where(~history.c.pinned).group_by(*ledger)
    read = kit.app.gate.database.read
    rows = await read(lambda one: one.execute(there).all())
    found = {(row[0], row[1], row[2]): int(row[3]) for row in rows}
    counted = await read(lambda one: one.execute(select(history_sizes)).all())
    return {
        (row.scope_type, row.scope_id, row.reserved): (
            found.get((row.scope_type, row.scope_id, row.reserved), 0),
            row.characters,
        )
        for row in counted
    }


async def versions(kit: Kit, tool: str, **which: Any) -> list[int]:
    return [one["version"] for one in (await result(kit, tool, **which))["entries"]]


async def test_settings_of_agents_leave_the_history_of_those_of_admins(kit: Kit) -> None:
    admins = {"key": "security.level"}
    await result(kit, "db.system_setting.create", **admins, **text("low"))
    for number in range(5):
        await result(kit, "db.system_setting.update", **admins, **text(f"{number}" * 900))
    for number in range(50):
        await result(kit, "db.system_setting.create", PM, key=f"custom.k{number}", **LONG)
    assert await versions(kit, "operator.system_setting.history", **admins) == [1, 2, 3, 4, 5, 6]
    found = await sizes(kit)
    assert all(there == counted <= BOUND for there, counted in found.values())
    assert found["setting", "", False][1] > BOUND - 4_000


async def test_the_last_changes_of_a_key_stay_whatever_is_done_to_others(kit: Kit) -> None:
    own, project = {"key": "own"}, {"scope_type": "project", "scope_id": WEBSITE}
    await result(kit, "db.preference.create", PM_OF_ALICE, **project, **own, **text("a"))
    for value in "bcde":
        await result(kit, "db.preference.update", PM_OF_ALICE, **project, **own, **text(value))
    for number in range(10):
        key = {**project, "key": f"k{number}"}
        await result(kit, "db.preference.create", PM_OF_ALICE, **key, **LONG)
        await result(kit, "db.preference.delete", PM_OF_ALICE, **key)
    assert await versions(kit, "operator.preference.history", **project, **own) == [3, 4, 5]
    await result(kit, "db.preference.delete", PM_OF_ALICE, **project, **own)
    for number in range(10):
        await result(kit, "db.preference.create", PM_OF_ALICE, **project, key=f"l{number}", **LONG)
    gone = await refused(kit, "operator.preference.history", **project, **own)
    assert gone["type"] == "not_found", "nothing of it is left"
    assert all(there == counted <= BOUND for there, counted in (await sizes(kit)).values())


async def test_changes_by_turns_in_many_scopes_are_counted_in_each(kit: Kit) -> None:
    scopes = [
        {"scope_type": "task", "scope_id": BUILD},
        {"scope_type": "system"},
        {"scope_type": "user", "scope_id": "alice"},
        {"scope_type": "user", "scope_id": "bob"},
    ]
    for number in range(24):
        for scope in scopes:
            key = {**scope, "key": f"k{number % 8}"}
            tool = "create" if number < 8 else "update"
            await result(kit, f"db.preference.{tool}", **key, **text(f"{number % 10}" * 2_000))
    found = await sizes(kit)
    for scope in scopes:
        there, counted = found[scope["scope_type"], scope.get("scope_id", ""), False]
        assert BOUND - 5_000 < there == counted <= BOUND


async def test_old_versions_of_one_key_are_counted_out(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_history, "KEPT_VERSIONS", 5)
    await result(kit, "db.preference.create", scope_type="system", key="k", **text("x"))
    for number in range(12):
        await result(kit, "db.preference.update", scope_type="system", key="k", **text(f"{number}"))
    told = await versions(kit, "operator.preference.history", scope_type="system", key="k")
    assert told == [9, 10, 11, 12, 13]
    there, counted = (await sizes(kit))["system", "", False]
    assert there == counted < 600


async def test_a_scope_that_is_deleted_has_its_history_counted(kit: Kit) -> None:
    await result(kit, "operator.group.create", group_id="g", display_name="G")
    scope = {"scope_type": "group", "scope_id": "g"}
    for number in range(10):
        await result(kit, "db.preference.create", **scope, key=f"k{number}", **LONG)
    await result(kit, "db.preference.create", **scope, key="security.level", **text("high"))
    await result(kit, "operator.group.delete", group_id="g")
    found = await sizes(kit)
    assert BOUND - 7_000 < found["group", "g", False][0] == found["group", "g", False][1] <= BOUND
    kept = await result(kit, "operator.preference.history", **scope, key="security.level")
    assert [one["change"] for one in kept["entries"]] == ["created", "deleted"]
