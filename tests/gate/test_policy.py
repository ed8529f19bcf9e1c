"""Who may see and call what, and which rule says so."""

from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import (
    ADMIN,
    AGENTS,
    PUBLIC,
    USER,
    a_tool,
    is_stored,
    offer,
    only_row,
    shipped_policy,
    storing,
)

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.policy import Decision
from toolgate.gate.principal import ANONYMOUS, AgentType, Principal, Role
from toolgate.gate.tool import Effect
from toolgate.settings import BadSettings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

READ, WRITE, DESTROY = Effect.READ, Effect.WRITE, Effect.DESTROY
PM, PA, WORKER = AgentType.PM, AgentType.PA, AgentType.WORKER
DISABLED_WRITES = "Write operations are disabled. Set MCP_ENABLE_WRITES=true to enable."


def decide(principal: Principal, tool: AnyTool, **switches: Any) -> Decision:
    return shipped_policy(**switches).decide(principal, tool)


# Roles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "seen_by"),
    [
        (Role.PUBLIC, {"anonymous", "public", "user", "admin"}),
        (Role.USER, {"user", "admin"}),
        (Role.ADMIN, {"admin"}),
    ],
)
def test_a_role_includes_the_lower_ones(role: Role, seen_by: set[str]) -> None:
    tool = a_tool("network.thing", pack="network", role=role)
    callers = {"anonymous": ANONYMOUS, "public": PUBLIC, "user": USER, "admin": ADMIN}
    assert {name for name, who in callers.items() if decide(who, tool).visible} == seen_by
    assert {name for name, who in callers.items() if decide(who, tool).allowed} == seen_by


@pytest.mark.parametrize("arguments", [{}, {"wrong": 1}, [], None])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_hidden_tool_is_answered_exactly_like_an_unknown_one(
    tmp_path: Path, arguments: Any, dry_run: bool
) -> None:
    hidden = a_tool("db.task.get", storing(), effect=WRITE)
    async with opened_kit(tmp_path, plugins=offer(hidden)) as kit:
        secret = await kit.send("db.task.get", arguments, USER, dry_run=dry_run)
        nothing = await kit.send("db.task.xyz", arguments, USER, dry_run=dry_run)
        assert secret.raw == nothing.raw.replace(b"db.task.xyz", b"db.task.get")
        assert secret.text == nothing.text.replace("db.task.xyz", "db.task.get")
        assert (secret.status, secret.error_type) == (nothing.status, nothing.error_type)
        assert type(secret.error) is type(nothing.error)
        rows = await kit.audit_rows()
        assert [row["error_type"] for row in rows] == ["not_found", "not_found"]
        assert [row["decision"] for row in rows] == ["deny", "deny"]
        assert not await is_stored(kit)


async def test_a_hidden_tool_stays_hidden_in_its_other_spelling(tmp_path: Path) -> None:
    hidden = a_tool("db.task.get")
    async with opened_kit(tmp_path, plugins=offer(hidden)) as kit:
        refused = await kit.call("db_task_get", USER)
        assert refused.body == {"error": "Unknown tool: db_task_get"}
        assert (await kit.call("db_task_get", ADMIN)).error is None


async def test_a_switched_off_tool_may_be_named_in_either_spelling(tmp_path: Path) -> None:
    tool = a_tool("db.task.get")
    plugins = offer(tool)
    async with opened_kit(tmp_path, plugins=plugins, policy__disabled="db_task_get") as kit:
        refused = await kit.call("db.task.get", ADMIN)
    assert refused.error_type == "not_found"


@pytest.mark.parametrize(
    "setting", [{"policy__disabled": "nope"}, {"limits__tool_calls_per_minute": {"nope": 3}}]
)
async def test_a_setting_that_names_no_tool_is_refused(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    with pytest.raises(BadSettings, match="names nope, which is no tool's name"):
        async with opened_kit(tmp_path, **setting):
            pass


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"policy__disabled": "get_documnt"}, "and no pack's. Did you mean get_document?"),
        ({"policy__disabled": "apdata"}, "and no pack's. Did you mean appdata?"),
        ({"policy__disabled": "xyz"}, "and no pack's. `toolgate tools` lists them."),
        (
            {"limits__tool_calls_per_minute": {"get_documnt": 3}},
            "is no tool's name. Did you mean get_document?",
        ),
    ],
    ids=["a tool", "a pack", "neither", "a limit"],
)
async def test_a_setting_that_names_no_tool_is_told_the_nearest(
    tmp_path: Path, setting: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadSettings) as refused:
        async with opened_kit(tmp_path, **setting):
            pass
    assert str(refused.value).endswith(told)


# Switches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"collection": "apps", "data": {"name": "x"}},
        {},
        {"nonsense": True},
        {"collection": "nowhere", "data": 5},
        ["not", "an", "object"],
        "text",
        None,
    ],
)
async def test_writes_are_refused_in_the_seeds_words_before_arguments_are_read(
    tmp_path: Path, arguments: Any
) -> None:
    async with opened_kit(tmp_path) as kit:
        outcome = await kit.send("create_document", arguments)
        assert outcome.body == {"error": DISABLED_WRITES, "success": False}
        assert outcome.status == 403
        row = await only_row(kit)
        assert (row["decision"], row["rule"]) == ("deny", "appdata-writes-off")
        assert row["error_type"] == "access_denied"


async def test_switching_appdatas_writes_off_leaves_other_packs_alone(tmp_path: Path) -> None:
    other = a_tool("artifact.put", storing(), effect=WRITE)
    async with opened_kit(tmp_path, plugins=offer(other)) as kit:
        assert (await kit.call(other.name)).error is None
        assert await is_stored(kit)


async def test_a_read_only_gate_refuses_every_write_and_answers_every_read(
    tmp_path: Path,
) -> None:
    tools = [a_tool(f"db.{effect}", effect=effect) for effect in Effect]
    kit_of = opened_kit(tmp_path, writes=True, plugins=offer(*tools), policy__read_only=True)
    async with kit_of as kit:
        told = {tool.effect: (await kit.call(tool.name)).status for tool in tools}
        assert told == {READ: 200, WRITE: 403, DESTROY: 403}
        refused = await kit.call("create_document", collection="apps", data={})
        assert refused.body["error"].startswith("This gate is read-only.")
        assert kit.app.gate.policy.visible(ADMIN, tools) == tools


async def test_a_tool_that_is_switched_off_does_not_exist_for_anybody(tmp_path: Path) -> None:
    node = a_tool("node.list")
    kit_of = opened_kit(tmp_path, plugins=offer(node), policy__disabled=("node.list",))
    async with kit_of as kit:
        for who in (ADMIN, AGENTS[PM]):
            refused = await kit.call("node_list", who)
            nothing = await kit.call("node_lost", who)
            assert refused.raw == nothing.raw.replace(b"node_lost", b"node_list")
            assert refused.error_type == "not_found"
            assert kit.app.gate.policy.visible(who, [node]) == []
        rules = {row["rule"] for row in await kit.audit_rows() if row["tool_name"] == node.name}
        assert rules == {"tool-switched-off"}
        assert (await kit.call("list_collections")).error is None
