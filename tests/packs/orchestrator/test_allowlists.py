"""Who may use which tool on whose records: the whole table.

What is expected is written here as the specification of the gateway says it, and not taken from
the rules that are tested: the allow lists of project manager, project analyst and worker, and that
an id of somebody else is answered like one that nobody has.
"""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    OF_BOB,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    SORTING,
    WEBSITE,
    WORKER,
)
from tests.statements import noted_statements

from toolgate import packs
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import AgentType, Principal, Role, of_agent
from toolgate.gate.tool import Effect
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

ALLOWED = {
    "worker": [
        "artifact.*", "memory.*", "skills.list", "skills.get", "web.fetch", "web.search",
        "api.call", "help.*",
    ],
    "pm": [
        "db.*", "node.*", "sandbox.*", "artifact.*", "model.*", "connector.*", "web.*", "api.call",
        "git.*", "help.*", "persona.*", "skills.*",
    ],
    "pa": ["db.*", "artifact.*", "web.*", "api.call", "help.*"],
}  # fmt: skip
READS_ONLY = {"pa": ["db.*", "artifact.*"]}
"""Of these a project analyst may use what only reads."""

OWN: dict[str, dict[str, str]] = {
    "task_id": {"own": BUILD, "foreign": SORT, "absent": ABSENT},
    "job_id": {"own": BUILDING, "foreign": SORTING, "absent": ABSENT},
    "project_id": {"own": WEBSITE, "foreign": OF_BOB, "absent": ABSENT},
    "slug": {"own": "website", "foreign": "default-bob", "absent": "default-eve"},
}
SCOPES = {
    "user": {"own": "alice", "foreign": "bob", "absent": "eve"},
    "group": {"own": "writers", "foreign": "designers", "absent": "eves"},
    "project": OWN["project_id"],
    "task": OWN["task_id"],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "artifact.put": {"path": "a.txt", "content_bytes_base64": "YQ=="},
    "artifact.get": {"path": "site/index.html"},
    "skills.create": {"content": "Be brief.", "scope": "project"},
    "skills.get": {"skill_id": "00000000-0000-4000-8000-000000000001"},
    "skills.update": {"name": "N"},
    "db.task.update_status": {"status": "running"},
    "db.job.update_status": {"status": "running"},
    "db.preference.get": {"key": "a.b"},
    "db.preference.create": {"key": "c.d", "value": 1, "value_type": "number"},
    "db.preference.update": {"key": "a.b", "value": 1, "value_type": "number"},
    "db.preference.delete": {"key": "a.b"},
}
"""What a tool needs beside the ids."""

EVERY = {*OWN, *(f"scope {one}" for one in SCOPES)}
WITHOUT_USER = {"task_id", "job_id", "scope task"}
"""What there is for a caller without a user, if anything."""
TO_TASK, TO_PROJECT = {"task_id": BUILD}, {"project_id": WEBSITE}
CALLERS: dict[str, tuple[Principal, set[str]]] = {
    "pm": (PM_OF_ALICE, EVERY),
    "pm of a task": (replace(PM_OF_ALICE, bound=TO_TASK), EVERY),
    "pm of a project": (replace(PM_OF_ALICE, bound=TO_PROJECT), EVERY),
    "pm without user": (PM, WITHOUT_USER),
    "pm of a task without user": (
        replace(PM, bound=TO_TASK),
        EVERY - {"scope user", "scope group"},
    ),
    "pa": (PA_OF_ALICE, EVERY),
    "pa of a task": (replace(PA_OF_ALICE, bound=TO_TASK), EVERY),
    "pa without user": (of_agent(AgentType.PA, "pa"), set()),
    "worker": (WORKER, {"task_id", "job_id"}),
    "worker without user": (
        replace(of_agent(AgentType.WORKER, "w"), bound=TO_TASK),
        {"task_id", "job_id"},
    ),
}
"""Callers, and the ways to name a record in which there is one of their own."""
OF_AN_OWNER = {
    "skills.create": {"access_denied"},
    "skills.update": {"access_denied"},
    "skills.delete": {"access_denied"},
}
"""What a bound key without a user may not: a skill has an owner."""
OF_USERS = {"scope user", "scope group"}
"""What a bound key reads and does not write, whoever's it is."""


def is_expected(agent: str, tool: AnyTool) -> bool:
    """Whether the specification allows a tool to an agent."""
    if tool.role is Role.PUBLIC:
        return True
    if tool.pack.name != "orchestrator":
        return False
    if not any(fnmatchcase(tool.name, one) for one in ALLOWED[agent]):
        return False
    reads_only = any(fnmatchcase(tool.name, one) for one in READS_ONLY.get(agent, ()))
    return tool.effect is Effect.READ or not reads_only


@pytest.mark.parametrize("agent", sorted(ALLOWED))
async def test_an_agent_sees_what_its_allow_list_names_of_all_packs(
    tmp_path: Path, agent: str
) -> None:
    async with opened_kit(tmp_path, packs__enabled=packs.SHIPPED) as kit:
        gate, caller = kit.app.gate, of_agent(AgentType(agent), "a")
        assert len(gate.catalogue) > 60
        decisions = {tool.name: gate.policy.decide(caller, tool) for tool in gate.catalogue}
        visible = {name for name, one in decisions.items() if one.visible}
        callable_ = {name for name, one in decisions.items() if one.allowed}
        expected = {tool.name for tool in gate.catalogue if is_expected(agent, tool)}
    assert visible == expected
    assert callable_ == expected


def ids_of(tool: AnyTool) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """The ways in which a tool can name somebody's record: label, ids, and what goes with it."""
    fields = tool.input.model_fields
    more = ARGUMENTS.get(tool.name, {})
    for field, ids in OWN.items():
        # Where a task is named, a job beside it is one of that task.
        beside = {"task_id": BUILD} if field == "job_id" and "task_id" in fields else {}
        if field in fields:
            yield field, ids, {**more, **beside}
    if "scope_type" in fields and "scope_id" in fields:
        for scope_type, ids in SCOPES.items():
            yield f"scope {scope_type}", ids, {**more, "scope_type": scope_type}


def named(label: str, value: str) -> dict[str, str]:
    return {"scope_id" if label.startswith("scope") else label: value}


async def ended(kit: Kit, tool: str, caller: Principal, arguments: dict[str, Any]) -> Any:
    """What a call that stores nothing came to, and the statements it took."""
    dry = kit.app.gate.catalogue.find(tool)
    assert dry is not None
    with noted_statements() as statements:
        outcome = await kit.call(tool, caller, dry_run=dry.effect is not Effect.READ, **arguments)
    ours = [one for one in statements if "orchestrator_" in one]
    return outcome, ours


async def prepare(kit: Kit) -> dict[str, dict[str, Any]]:
    """Store what callers have of their own; the skill that tools are asked for."""
    await kit.call("operator.group.create", group_id="writers", display_name="Writers")
    await kit.call("operator.group.add_member", group_id="writers", user_id="alice")
    value: dict[str, Any] = {"key": "a.b", "value": 1, "value_type": "number"}
    for scope_type, ids in SCOPES.items():
        place = {"scope_type": scope_type, "scope_id": ids["own"]}
        assert (await kit.call("db.preference.create", **place, **value)).error is None
    skill: dict[str, Any] = {"task_id": BUILD, "content": "# x", "scope": "project"}
    made = (await kit.call("skills.create", PM_OF_ALICE, **skill)).body["result"]["id"]
    await kit.app.gate.switches.read_if_changed()  # now, and not in the middle of what is counted
    return {one: {"skill_id": made} for one in ("skills.update", "skills.delete")}


def is_beyond(caller: Principal, tool: AnyTool, label: str) -> bool:
    """Whether a caller is told that it may not, and not whether there is such a record."""
    return bool(caller.bound) and label in OF_USERS and tool.effect is not Effect.READ


@pytest.mark.parametrize("agent", CALLERS)
async def test_what_is_somebody_elses_is_answered_like_what_nobody_has(
    kit: Kit, agent: str
) -> None:
    caller, own = CALLERS[agent]
    skills, seen = await prepare(kit), 0
    await kit.call("help.get", caller, task_id=BUILD)  # the access rules are read once
    for tool in kit.app.gate.visible(caller):
        if tool.pack.name != "orchestrator":
            continue
        for label, ids, more in ids_of(tool):
            if caller is PM and label in WITHOUT_USER:
                continue  # it runs the whole system: no task is somebody else's
            more |= skills.get(tool.name, {})
            absent, takes = await ended(
                kit, tool.name, caller, {**more, **named(label, ids["absent"])}
            )
            others = ["foreign"] if label in own else ["foreign", "own"]
            for other in others:
                foreign, took = await ended(
                    kit, tool.name, caller, {**more, **named(label, ids[other])}
                )
                case = f"{agent}: {tool.name} by {label}, {other}: {foreign.body} {absent.body}"
                expected = "access_denied" if is_beyond(caller, tool, label) else "not_found"
                if tool.name == "db.preference.list":
                    assert foreign.body["result"] == {"entries": []}, case
                else:
                    assert foreign.body["error"]["type"] == expected, case
                same = str(foreign.body).replace(ids[other], "") == str(absent.body).replace(
                    ids["absent"], ""
                )
                assert same, case
                assert took == takes, case
                seen += 1
    assert seen >= {"pm": 20, "pa": 8, "worker": 6}[caller.agent_type or ""]


@pytest.mark.parametrize("agent", CALLERS)
async def test_what_is_a_callers_own_is_there(kit: Kit, agent: str) -> None:
    caller, own = CALLERS[agent]
    skills, seen = await prepare(kit), set[str]()
    for tool in kit.app.gate.visible(caller):
        if tool.pack.name != "orchestrator":
            continue
        for label, ids, more in ids_of(tool):
            if label not in own:
                continue
            given = {**more, **skills.get(tool.name, {}), **named(label, ids["own"])}
            outcome, _ = await ended(kit, tool.name, caller, given)
            case = f"{agent}: {tool.name} by {label}: {outcome.body}"
            if is_beyond(caller, tool, label):
                assert outcome.body["error"]["type"] == "access_denied", case
            elif caller.user_id is None and caller.bound and tool.name in OF_AN_OWNER:
                assert outcome.body["error"]["type"] in OF_AN_OWNER[tool.name], case
            else:
                assert outcome.error is None, case
                if tool.name == "db.preference.list":
                    assert outcome.body["result"]["entries"][0]["key"] == "a.b", case
            seen.add(label)
    assert seen == own


READ_BY_VIEWER = {
    "task_id": BUILD,
    "job_id": BUILDING,
    "project_id": WEBSITE,
    "slug": "website",
    "scope project": WEBSITE,
    "scope task": BUILD,
}
"""What bob has of the project that he is a viewer in."""
OF_VIEWER: dict[str, dict[str, Any]] = {
    "artifact.get": {"path": "site/index.html"},
    "skills.create": {"content": "Be brief.", "scope": "project"},
    "db.preference.get": {"key": "standards.markdown.line_length"},
}
"""What there is to read, and a skill for the whole project."""


async def test_a_viewer_reads_what_belongs_to_the_project_and_writes_nothing(kit: Kit) -> None:
    added: dict[str, Any] = {
        "key": "standards.markdown.line_length",
        "value": 80,
        "value_type": "number",
    }
    added |= {"scope_type": "task", "scope_id": BUILD}
    assert (await kit.call("db.preference.create", **added)).error is None
    skill: dict[str, Any] = {"task_id": BUILD, "content": "Be brief.", "scope": "project"}
    made = (await kit.call("skills.create", PM_OF_ALICE, **skill)).body["result"]["id"]
    named_skill = {one: {"skill_id": made} for one in ("skills.update", "skills.delete")}
    reads, writes = 0, 0
    for tool in kit.app.gate.visible(PM_OF_BOB):
        if tool.pack.name != "orchestrator":
            continue
        for label, _, more in ids_of(tool):
            if label not in READ_BY_VIEWER:
                continue
            given = {**more, **OF_VIEWER.get(tool.name, {}), **named_skill.get(tool.name, {})}
            given |= named(label, READ_BY_VIEWER[label])
            outcome, _ = await ended(kit, tool.name, PM_OF_BOB, given)
            case = f"{tool.name} by {label}: {outcome.body}"
            if tool.effect is Effect.READ:
                assert outcome.error is None, case
                reads += 1
            else:
                assert outcome.body["error"]["type"] == "access_denied", case
                assert ("only reads" in case) != (tool.name in named_skill), case
                writes += 1
    assert reads >= 12
    assert writes >= 12


async def test_a_project_manager_without_a_user_reaches_every_task_and_no_project(
    kit: Kit,
) -> None:
    for task_id in (BUILD, SORT):
        assert (await kit.call("db.task.get", PM, task_id=task_id)).error is None
    assert (await kit.call("db.project.list", PM)).body["result"]["entries"] == []
    one = await kit.call("db.project.get", PM, project_id=WEBSITE)
    other = await kit.call("db.project.get", PM, project_id=ABSENT)
    assert one.body == other.body
    assert one.body["error"]["type"] == "not_found"
