"""Which tools an agent of each type may see and call, and which rule says so."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import effort
from tests.gate.tools import ADMIN, AGENTS, PACKS, a_tool, offer, only_row, shipped_policy, words

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.policy import Decision
from toolgate.gate.principal import AgentType, Kind, Principal, Role
from toolgate.gate.rules import BadPolicy, check, rules_of
from toolgate.gate.tool import Effect
from toolgate.packs.orchestrator.access_rules import NO_RULE
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

READ, WRITE, DESTROY = Effect.READ, Effect.WRITE, Effect.DESTROY
PM, PA, WORKER = AgentType.PM, AgentType.PA, AgentType.WORKER


def decide(principal: Principal, tool: AnyTool) -> Decision:
    return shipped_policy().decide(principal, tool)


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


def test_nobody_adds_images_while_nothing_reads_the_system_setting() -> None:
    add = a_tool(ADD_IMAGE, effect=WRITE)
    off = decide(AGENTS[PM], add)
    assert (off.visible, off.allowed, off.rule) == (True, False, "images-are-not-added")
    assert off.message == "Adding to the allowed sandbox images is switched off."
    assert not decide(AGENTS[WORKER], add).visible
    assert not decide(ADMIN, add).visible


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


def test_a_rule_cannot_be_called_what_access_rules_call_a_decision() -> None:
    rule = f'@id("{NO_RULE}")\nforbid (principal, action, resource);'
    with pytest.raises(BadPolicy, match="is what the gate itself calls a decision"):
        check(rules_of({"team.cedar": rule}), words())


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
            "images-are-not-added": tool.name == ADD_IMAGE and tool.pack.name == "orchestrator",
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
    + [ADD_IMAGE, "create_document", "network.x", "dbx.y", "skills.get.x"]
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
    disabled=st.frozensets(tool_names, max_size=2),
)


@settings(max_examples=effort(60, 200))
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
