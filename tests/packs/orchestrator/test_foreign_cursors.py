"""Cursors of lists whose rows depend on who asks: bound to its reach, and to no position."""

from dataclasses import replace
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    PA_OF_ALICE,
    PM_OF_ALICE,
    PM_OF_BOB,
    WEBSITE,
    refused,
    result,
)

from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

PLACE = {"scope_type": "project", "scope_id": WEBSITE}
LISTS: dict[str, dict[str, Any]] = {
    "db.project.list": {},
    "skills.list": {"task_id": BUILD},
    "db.preference.list": PLACE,
}
NAMES = {"db.project.list": "slug", "skills.list": "name", "db.preference.list": "key"}


async def add(kit: Kit, tool: str, name: str) -> str:
    """Another row of a list that both alice and bob read; its id."""
    if tool == "db.project.list":
        new = {"slug": name, "display_name": name}
        made = (await result(kit, "operator.project.create", **new))["id"]
        for user in ("alice", "bob"):
            bound = {"subject_type": "user", "subject_id": user, "role": "viewer"}
            await result(kit, "operator.role_binding.set", project_id=made, **bound)
        return made
    if tool == "skills.list":
        skill = {"task_id": BUILD, "content": f"# {name}", "name": name, "scope": "project"}
        return (await result(kit, "skills.create", PM_OF_ALICE, **skill))["id"]
    value = {"value": 1, "value_type": "number"}
    await result(kit, "db.preference.create", **PLACE, key=f"custom.{name}", **value)
    return name


async def remove(kit: Kit, tool: str, made: str) -> None:
    if tool == "db.project.list":
        for user in ("alice", "bob"):
            bound = {"subject_type": "user", "subject_id": user}
            await result(kit, "operator.role_binding.remove", project_id=made, **bound)
        await result(kit, "operator.project.delete", project_id=made)
    elif tool == "skills.list":
        await result(kit, "skills.delete", PM_OF_ALICE, task_id=BUILD, skill_id=made)
    else:
        await result(kit, "db.preference.delete", **PLACE, key=f"custom.{made}")


def changed(cursor: str) -> str:
    return cursor[:-2] + ("A" if cursor[-2] != "A" else "B") + cursor[-1]


@pytest.mark.parametrize("tool", LISTS)
async def test_a_cursor_is_good_for_who_got_it_and_nobody_else(kit: Kit, tool: str) -> None:
    for name in ("m1", "m2"):
        await add(kit, tool, name)
    page = await result(kit, tool, PM_OF_ALICE, **LISTS[tool], limit=1)
    cursor = page["next_cursor"]
    again = {**LISTS[tool], "limit": 1, "cursor": cursor}
    await result(kit, tool, PM_OF_ALICE, **again)
    await result(kit, tool, replace(PM_OF_ALICE, id="another key of hers"), **again)
    bound = replace(PM_OF_ALICE, bound={"task_id": BUILD})
    for caller in (PM_OF_BOB, bound):
        error = await refused(kit, tool, caller, **again)
        assert (error["type"], "cursor" in error["message"]) == ("invalid_arguments", True)
    error = await refused(kit, tool, PM_OF_ALICE, **{**again, "cursor": changed(cursor)})
    assert error["type"] == "invalid_arguments"
    if tool != "skills.list":  # an analyst has no skills
        await result(kit, tool, PA_OF_ALICE, **again)


@pytest.mark.parametrize("tool", LISTS)
async def test_a_cursor_survives_new_and_deleted_rows(kit: Kit, tool: str) -> None:
    made = {name: await add(kit, tool, name) for name in ("m1", "m3", "m5", "m7")}
    ask: dict[str, Any] = {**LISTS[tool], "limit": 1}
    seen: list[str] = []
    while "m3" not in str(seen):
        page = await result(kit, tool, PM_OF_ALICE, **ask)
        seen += [row[NAMES[tool]] for row in page["entries"]]
        ask["cursor"] = page["next_cursor"]
    await remove(kit, tool, made["m3"])  # the very row that the cursor names
    await remove(kit, tool, made["m1"])
    new = "m8" if tool == "skills.list" else "m4"  # skills: what is changed last is first
    await add(kit, tool, new)
    while "cursor" in ask:
        page = await result(kit, tool, PM_OF_ALICE, **ask)
        seen += [row[NAMES[tool]] for row in page["entries"]]
        ask.pop("cursor")
        if "next_cursor" in page:
            ask["cursor"] = page["next_cursor"]
    assert len(seen) == len(set(seen)), "no row twice"
    ours = [one[-2:] for one in seen if one[-2:-1] == "m" and one[-1:].isdigit()]
    assert ours == (["m7", "m5", "m3"] if tool == "skills.list" else ["m1", "m3", "m4", "m5", "m7"])
