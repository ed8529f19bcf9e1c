"""Who may see and call what, and which rule says so."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.tools import (
    ADMIN,
    AGENTS,
    PACKS,
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
from toolgate.gate.principal import ANONYMOUS, AgentType, Kind, Principal, Role
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


# Agents ---------------------------------------------------------------------------------------

MATRIX: list[tuple[str, Effect, set[AgentType]]] = [
    ("db.task.get", READ, {PM, PA}),
    ("db.task.update_status", WRITE, {PM}),
    ("node.list", READ, {PM}),
    ("node.refresh_config", WRITE, {PM}),
    ("sandbox.exec", WRITE, {PM}),
    ("sandbox.stream_logs", READ, {PM}),
    ("sandbox.allowed_images.list", READ, {PM}),
    ("artifact.get", READ, {PM, PA, WORKER}),
    ("artifact.put", WRITE, {PM, WORKER}),
    ("memory.add", WRITE, {WORKER}),
    ("memory.list", READ, {WORKER}),
    ("skills.list", READ, {PM, WORKER}),
    ("skills.get", READ, {PM, WORKER}),
    ("skills.create", WRITE, {PM}),
    ("skills.delete", DESTROY, {PM}),
    ("web.fetch", READ, {PM, PA, WORKER}),
    ("web.search", READ, {PM, PA, WORKER}),
    ("api.call", WRITE, {PM, PA, WORKER}),
    ("git.push", WRITE, {PM}),
    ("git.repo.validate", READ, {PM}),
    ("model.list", READ, {PM}),
    ("connector.list", READ, {PM}),
    ("help.get", READ, {PM, PA, WORKER}),
    ("persona.list", READ, {PM}),
]
ADD_IMAGE = "sandbox.allowed_images.add"
RULES = {
    PM: {"pm-runs-the-project"},
    PA: {"pa-reads-the-project", "pa-asks-outside"},
    WORKER: {"worker-does-its-task"},
}


def test_a_project_manager_adds_images_only_where_that_is_switched_on() -> None:
    add = a_tool(ADD_IMAGE, effect=WRITE)
    off = decide(AGENTS[PM], add)
    assert (off.visible, off.allowed, off.rule) == (True, False, "pm-may-not-add-images")
    assert off.message is not None
    assert "policy.pm_adds_images" in off.message
    assert decide(AGENTS[PM], add, pm_adds_images=True).allowed
    assert not decide(AGENTS[WORKER], add, pm_adds_images=True).visible
    assert not decide(ADMIN, add, pm_adds_images=True).visible


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


@pytest.mark.parametrize("agent", AgentType)
@pytest.mark.parametrize(("name", "effect", "allowed"), MATRIX, ids=[one[0] for one in MATRIX])
def test_an_agent_gets_the_tools_of_its_type(
    name: str, effect: Effect, allowed: set[AgentType], agent: AgentType
) -> None:
    decision = decide(AGENTS[agent], a_tool(name, effect=effect))
    assert (decision.visible, decision.allowed) == (agent in allowed, agent in allowed)
    if agent in allowed:
        assert decision.rule in RULES[agent]
    elif name.startswith("sandbox.allowed_images."):
        assert decision.rule == "allowed-images-are-for-the-pm"
    else:
        assert decision.rule == "no-rule-permits"


@pytest.mark.parametrize("agent", AgentType)
def test_an_agent_gets_nothing_of_a_like_name_in_another_pack(agent: AgentType) -> None:
    for pack in set(PACKS) - {"orchestrator"}:
        tools = [a_tool(name, effect=effect, pack=pack) for name, effect, _ in MATRIX]
        assert shipped_policy().visible(AGENTS[agent], tools) == []


async def test_what_an_agent_may_is_what_the_gate_lets_it_do(tmp_path: Path) -> None:
    tools = [a_tool(name, effect=effect) for name, effect, _ in MATRIX]
    async with opened_kit(tmp_path, plugins=offer(*tools)) as kit:
        for agent, who in AGENTS.items():
            done = {tool.name for tool in tools if (await kit.call(tool.name, who)).error is None}
            assert done == {name for name, _, allowed in MATRIX if agent in allowed}
        rows = await kit.audit_rows()
    assert len(rows) == len(MATRIX) * len(AGENTS)
    assert {row["agent_type"] for row in rows} == {"pm", "pa", "worker"}
    for row in rows:
        named = RULES[AgentType(row["agent_type"])]
        assert (row["rule"] in named) == (row["decision"] == "allow"), row


async def test_a_forbidding_rule_wins_over_a_permitting_one(tmp_path: Path) -> None:
    images = a_tool("sandbox.allowed_images.list")
    async with opened_kit(tmp_path, plugins=offer(images)) as kit:
        assert (await kit.call(images.name, ADMIN)).error_type == "not_found"
        row = await only_row(kit)
        assert (row["decision"], row["rule"]) == ("deny", "allowed-images-are-for-the-pm")


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


# Every combination ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A caller, a tool and the switches."""

    principal: Principal
    tool: AnyTool
    switches: dict[str, Any]


PM_SPACES = {
    "db", "node", "sandbox", "artifact", "model", "connector",
    "web", "api", "git", "help", "persona", "skills",
}  # fmt: skip


def permits(case: Case) -> set[str]:
    """The permitting rules that apply, told a second time in Python."""
    who, tool = case.principal, case.tool
    orchestrator = tool.pack.name == "orchestrator"
    space, agent = tool.namespace, who.agent_type
    reads = tool.effect is READ
    analyst = orchestrator and agent is PA
    own = {"artifact", "memory", "web", "api", "help"}
    return {
        name
        for name, applies in {
            "public-tools": tool.role is Role.PUBLIC,
            "user-tools": tool.role is Role.USER and Role.USER in who.roles,
            "admin-everything": Role.ADMIN in who.roles,
            "pm-runs-the-project": orchestrator and agent is PM and space in PM_SPACES,
            "pa-reads-the-project": analyst
            and reads
            and space in {"db", "artifact", "web", "api", "help"},
            "pa-asks-outside": analyst and space in {"web", "api"},
            "worker-does-its-task": orchestrator
            and agent is WORKER
            and (space in own or tool.name in {"skills.list", "skills.get"}),
        }.items()
        if applies
    }


def hides(case: Case) -> set[str]:
    tool = case.tool
    images = tool.name.startswith("sandbox.allowed_images.") and tool.pack.name == "orchestrator"
    return {
        name
        for name, applies in {
            "allowed-images-are-for-the-pm": images and case.principal.agent_type != PM,
            "tool-switched-off": tool.name in case.switches["disabled"],
        }.items()
        if applies
    }


def stops(case: Case) -> set[str]:
    tool, switches = case.tool, case.switches
    writes = tool.effect is not READ
    return {
        name
        for name, applies in {
            "appdata-writes-off": tool.pack.name == "appdata"
            and writes
            and not switches["appdata_writes"],
            "read-only-gate": writes and switches["read_only"],
            "pm-may-not-add-images": tool.name == "sandbox.allowed_images.add"
            and not switches["pm_adds_images"],
        }.items()
        if applies
    }


principals = st.builds(
    Principal,
    kind=st.sampled_from(Kind),
    id=st.just("somebody"),
    roles=st.frozensets(st.sampled_from(Role)),
    agent_type=st.none() | st.sampled_from(AgentType),
)
tool_names = st.sampled_from(
    [name for name, _, _ in MATRIX]
    + ["sandbox.allowed_images.add", "create_document", "network.x", "dbx.y", "skills.get.x"]
)
tools = st.builds(
    a_tool,
    tool_names,
    pack=st.sampled_from(list(PACKS)),
    effect=st.sampled_from(Effect),
    role=st.sampled_from(Role),
    family=st.sampled_from(["documents", "tasks"]),
    open_world=st.booleans(),
)
switched = st.builds(
    dict,
    appdata_writes=st.booleans(),
    read_only=st.booleans(),
    pm_adds_images=st.booleans(),
    disabled=st.frozensets(tool_names, max_size=2),
)


@settings(max_examples=200)
@given(case=st.builds(Case, principals, tools, switched))
def test_the_rules_decide_as_their_model_in_python_does(case: Case) -> None:
    decision = shipped_policy(**case.switches).decide(case.principal, case.tool)
    granted, hidden, stopped = permits(case), hides(case), stops(case)
    visible = bool(granted) and not hidden
    assert decision.visible == visible
    assert decision.allowed == (visible and not stopped)
    deciding = hidden or (stopped if visible else set()) or granted or {"no-rule-permits"}
    assert decision.rule in deciding
    assert not decision.allowed or granted
