"""System settings that switch tools off: for everybody, on every server, and back again."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import update
from tests.gate.tools import a_tool, offer
from tests.packs.orchestrator.calls import BUILD, PM, WORKER, refused, result

from toolgate.gate.live_switches import switch
from toolgate.packs.orchestrator.sql.tables import settings
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

DISABLED = "mcp.tools.disabled"
TOOL = "db.task.get"
OFF = f"{TOOL} is switched off by an operator."


async def is_known(kit: Kit, tool: str = TOOL) -> bool:
    """Whether a server that has looked lets an admin call the tool."""
    await kit.app.gate.switches.read_if_changed()
    return (await kit.call(tool, task_id=BUILD)).error is None


async def put(kit: Kit, key: str, value: Any, value_type: str, verb: str = "create") -> Any:
    given = {"key": key, "value": value, "value_type": value_type}
    return await result(kit, f"db.system_setting.{verb}", **given)


async def test_a_list_of_tools_is_off_for_everybody(kit: Kit) -> None:
    await put(kit, DISABLED, [TOOL], "array")
    assert not await is_known(kit)
    hidden = await kit.call(TOOL, PM, task_id=BUILD)
    assert hidden.body == {"status": "error", "error": {"type": "tool_disabled", "message": OFF}}
    unseen = await kit.call(TOOL, WORKER, task_id=BUILD)
    assert unseen.body == {"error": f"Unknown tool: {TOOL}"}
    await put(kit, DISABLED, [], "array", "update")
    assert await is_known(kit)


async def test_one_tool_is_off_by_its_own_setting_until_that_is_deleted(kit: Kit) -> None:
    key = f"mcp.tool.{TOOL}.enabled"
    await put(kit, key, True, "boolean")
    assert await is_known(kit)
    await put(kit, key, False, "boolean", "update")
    assert not await is_known(kit)
    await result(kit, "db.system_setting.delete", key=key)
    assert await is_known(kit)


async def test_a_tool_with_capitals_in_its_name_is_switched_too(
    tmp_path: Path, database_url: str
) -> None:
    tool, key = "github.readFile", "mcp.tool.github.readFile.enabled"
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, plugins=offer(a_tool(tool, pack="network")), **settings) as kit:
        await put(kit, key, False, "boolean")
        await kit.app.gate.switches.read_if_changed()
        assert (await kit.call(tool)).error_type == "tool_disabled"
        for prefix in ("mcp.tool.github.readF", "mcp."):
            found = await result(kit, "db.system_setting.list", key_prefix=prefix)
            assert [one["key"] for one in found["entries"]] == [key]
        (change,) = (await result(kit, "operator.system_setting.history", key=key))["entries"]
        assert change["new"] is False
        await result(kit, "db.system_setting.delete", key=key)
        await kit.app.gate.switches.read_if_changed()
        assert (await kit.call(tool)).error is None
        for odd in ("mcp.tool.github.readfile.enabled", "Mcp.tool.github.readFile.enabled", "A.b"):
            given = {"key": odd, "value": False, "value_type": "boolean"}
            error = await refused(kit, "db.system_setting.create", **given)
            assert error["type"] == "invalid_arguments", odd


async def test_an_operators_switch_is_not_touched(kit: Kit) -> None:
    await kit.app.gate.database.write(lambda one: switch(one, "db.job.get", off=True))
    await put(kit, DISABLED, [TOOL], "array")
    assert not await is_known(kit)
    await result(kit, "db.system_setting.delete", key=DISABLED)
    assert await is_known(kit)
    assert kit.app.gate.switches.known.names == {"db.job.get"}


async def test_another_server_on_the_database_follows(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    same: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, **same) as other:
        await put(kit, DISABLED, [TOOL], "array")
        assert not await is_known(other)
        await put(other, DISABLED, [], "array", "update")
        assert await is_known(kit)


async def test_a_dry_run_switches_nothing(kit: Kit) -> None:
    given = {"key": DISABLED, "value": [TOOL], "value_type": "array"}
    await kit.call("db.system_setting.create", dry_run=True, **given)
    assert await is_known(kit)


@pytest.mark.parametrize(
    ("key", "value", "value_type", "message"),
    [
        (
            DISABLED,
            [TOOL, "artefact.put"],
            "array",
            "value names an unknown tool, artefact.put. Did you mean artifact.put?",
        ),
        (DISABLED, ["orchestrator"], "array", "value names an unknown tool, orchestrator."),
        (
            "mcp.tool.db.task.gte.enabled",
            False,
            "boolean",
            "key names an unknown tool, db.task.gte. Did you mean db.task.get?",
        ),
    ],
    ids=["list", "pack", "single"],
)
async def test_a_tool_that_there_is_not_is_refused_with_the_nearest(
    kit: Kit, key: str, value: Any, value_type: str, message: str
) -> None:
    given = {"key": key, "value": value, "value_type": value_type}
    error = await refused(kit, "db.system_setting.create", **given)
    assert message in error["message"]


async def test_a_list_with_tools_that_are_off_already_can_be_changed(kit: Kit) -> None:
    await put(kit, DISABLED, [TOOL], "array")
    assert not await is_known(kit)
    await put(kit, DISABLED, [TOOL, "db.job.get"], "array", "update")
    await kit.app.gate.switches.read_if_changed()
    assert kit.app.gate.switches.known.names == {TOOL, "db.job.get"}


@pytest.mark.parametrize("verb", ["create", "update", "delete", "get", "list"])
async def test_the_tools_that_change_settings_stay_on(kit: Kit, verb: str) -> None:
    name = f"db.system_setting.{verb}"
    single = f"mcp.tool.{name}.enabled"
    for key, value, value_type in ((DISABLED, [TOOL, name], "array"), (single, False, "boolean")):
        given = {"key": key, "value": value, "value_type": value_type}
        error = await refused(kit, "db.system_setting.create", **given)
        assert error["type"] == "invalid_arguments"
        assert f"value would switch {name} off" in error["message"]
        assert f"`toolgate switch off {name}` can be taken back" in error["message"]
    await put(kit, single, True, "boolean")
    await put(kit, DISABLED, [TOOL], "array")
    given = {"key": DISABLED, "value": [name], "value_type": "array"}
    assert "stay on" in (await refused(kit, "db.system_setting.update", **given))["message"]


async def test_a_list_that_was_stored_before_does_not_lock_the_operator_out(kit: Kit) -> None:
    await put(kit, DISABLED, [TOOL], "array")
    locked = orjson.dumps([TOOL, "db.system_setting.update"]).decode()
    old = update(settings).where(settings.c.key == DISABLED).values(value=locked)
    await kit.app.gate.database.write(lambda one: one.execute(old))
    await put(kit, "mcp.tool.db.job.get.enabled", False, "boolean")
    await kit.app.gate.switches.read_if_changed()
    assert kit.app.gate.switches.known.names == {TOOL, "db.job.get"}


async def test_the_list_wins_over_a_tools_own_setting_and_says_so(kit: Kit) -> None:
    await put(kit, DISABLED, [TOOL], "array")
    own = {"key": f"mcp.tool.{TOOL}.enabled", "value_type": "boolean"}
    error = await refused(kit, "db.system_setting.create", **own, value=True)
    assert (error["type"], error["message"]) == (
        "conflict",
        f"{TOOL} stays off: it is in {DISABLED}, and that list wins. "
        "Take it out of the list with db.system_setting.update.",
    )
    await put(kit, own["key"], False, "boolean")
    await kit.app.gate.switches.read_if_changed()
    assert kit.app.gate.switches.known.settings == {TOOL: [own["key"], DISABLED]}
    await put(kit, DISABLED, [], "array", "update")
    await put(kit, own["key"], True, "boolean", "update")
    assert await is_known(kit)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("mcp.tools.disabld", DISABLED),
        ("mcp.tools.enabled", DISABLED),
        (f"mcp.tool.{TOOL}.enabld", f"mcp.tool.{TOOL}.enabled"),
        (f"mcp.tool.{TOOL}", f"mcp.tool.{TOOL}.enabled"),
        ("mcp", None),
        ("mcp.x", None),
    ],
)
async def test_a_misspelled_switch_is_refused_with_the_nearest(
    kit: Kit, key: str, near: str | None
) -> None:
    given = {"key": key, "value": [TOOL], "value_type": "array"}
    error = await refused(kit, "db.system_setting.create", **given)
    assert error["type"] == "invalid_arguments"
    assert f"key {key} switches nothing. In mcp.* there are {DISABLED}" in error["message"]
    assert error["message"].endswith(f"Did you mean {near}?" if near else "NAME.enabled.")


@pytest.mark.parametrize(
    ("key", "value", "value_type"),
    [
        (DISABLED, TOOL, "string"),
        (DISABLED, [1], "array"),
        (f"mcp.tool.{TOOL}.enabled", "false", "string"),
        ("agents.project_manager.sandbox.allow_add_to_allowed_images", "true", "string"),
    ],
    ids=["text", "numbers", "text for a boolean", "images"],
)
async def test_a_value_that_could_not_steer_is_refused(
    kit: Kit, key: str, value: Any, value_type: str
) -> None:
    error = await refused(
        kit, "db.system_setting.create", key=key, value=value, value_type=value_type
    )
    assert error["type"] == "invalid_arguments"
    assert key in error["message"]
