"""Access rules: default deny, deny wins, conditions, subjects, and what the audit is told."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    ID,
    OF_BOB,
    PA_OF_ALICE,
    PA_OF_BOB,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    refused,
    result,
)

from toolgate.db.tables import audit
from toolgate.gate.principal import AgentType, Principal, Role
from toolgate.packs.orchestrator import access_rules as domain
from toolgate.packs.orchestrator.access_rules import EVERYTHING, NO_RULE
from toolgate.packs.orchestrator.sql import access_rules as sql_access_rules
from toolgate.packs.orchestrator.sql.tables import access_rules
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

DENIED = "Access rules do not allow this call."


async def rule(kit: Kit, **values: Any) -> str:
    """A rule that is in force on this worker."""
    made = await result(kit, "operator.access_rule.create", **values)
    await kit.app.gate.switches.read_if_changed()
    return made["id"]


async def only(kit: Kit, **values: Any) -> str:
    """The same in place of the rule that every database begins with."""
    await result(kit, "operator.access_rule.delete", rule_id=EVERYTHING)
    return await rule(kit, **values)


async def last_rows(kit: Kit, tool: str) -> list[Any]:
    await kit.app.gate.audit.flush()
    wanted = select(audit).where(audit.c.tool_name == tool).order_by(audit.c.seq)
    return list(await kit.app.gate.database.read(lambda one: one.execute(wanted).all()))


async def test_a_new_database_allows_agents_what_their_type_does(kit: Kit) -> None:
    (first,) = (await result(kit, "operator.access_rule.list"))["entries"]
    assert first["id"] == EVERYTHING
    assert (first["effect"], first["resource_pattern"]) == ("allow", "*")
    assert first["resource_type"] == "mcp.tool"
    await result(kit, "db.task.get", PM, task_id=BUILD)


async def test_what_no_rule_allows_is_denied(kit: Kit) -> None:
    await only(kit, effect="allow", resource_pattern="db.job.*")
    error = await refused(kit, "db.task.get", PM, task_id=BUILD)
    assert error == {"type": "access_denied", "message": DENIED}
    await result(kit, "db.job.get", PM, job_id=BUILDING)
    row = (await last_rows(kit, "db.task.get"))[-1]
    assert (row.decision, row.rule, row.task_id) == ("deny", NO_RULE, BUILD)


async def test_one_rule_that_denies_outweighs_all_that_allow(kit: Kit) -> None:
    await rule(kit, effect="allow", resource_pattern="db.task.*", priority=100)
    denies = await rule(kit, effect="deny", resource_pattern="db.*.get", priority=-100)
    error = await refused(kit, "db.task.get", PM, task_id=BUILD)
    assert error["message"] == DENIED
    assert denies not in str(error)
    row = (await last_rows(kit, "db.task.get"))[-1]
    assert (row.decision, row.rule) == ("deny", f"access-rule:{denies}")


async def test_of_several_that_deny_the_highest_priority_is_named(kit: Kit) -> None:
    await rule(kit, effect="deny", resource_pattern="db.task.get", priority=1)
    high = await rule(kit, effect="deny", resource_pattern="db.*", priority=2)
    await refused(kit, "db.task.get", PM, task_id=BUILD)
    assert (await last_rows(kit, "db.task.get"))[-1].rule == f"access-rule:{high}"


async def test_admins_are_not_subject_to_access_rules(kit: Kit) -> None:
    await rule(kit, effect="deny", resource_pattern="*")
    await result(kit, "db.task.get", task_id=BUILD)
    await refused(kit, "db.task.get", PM, task_id=BUILD)


@pytest.mark.parametrize(
    ("subject_type", "subject_id", "hit", "missed"),
    [
        ("agent", "pa", PA_OF_ALICE, PM_OF_ALICE),
        ("user", "bob", PA_OF_BOB, PA_OF_ALICE),
        ("group", "designers", PA_OF_BOB, PA_OF_ALICE),
    ],
    ids=["type", "user", "group"],
)
async def test_a_rule_is_about_its_subject(
    kit: Kit, subject_type: str, subject_id: str, hit: Any, missed: Any
) -> None:
    named = {"subject_type": subject_type, "subject_id": subject_id}
    await rule(kit, effect="deny", resource_pattern="db.project.list", **named)
    await refused(kit, "db.project.list", hit)
    await result(kit, "db.project.list", missed)


async def test_a_rule_is_about_one_key(kit: Kit) -> None:
    made = await kit.app.keys.create(agent_type=AgentType.PM)
    caller = await kit.app.keys.holder(made.id)
    assert caller is not None
    named = {"subject_type": "agent", "subject_id": caller.id}
    await rule(kit, effect="deny", resource_pattern="db.project.list", **named)
    await refused(kit, "db.project.list", caller)
    await result(kit, "db.project.list", PM)
    by_admin = await kit.app.keys.create(role=Role.ADMIN)
    await kit.app.keys.revoke(made.id)
    for key_id in ("nonsense", "", by_admin.id, made.id):
        given = {"subject_type": "agent", "subject_id": f"key:{key_id}"}
        error = await refused(
            kit, "operator.access_rule.create", effect="deny", resource_pattern="db.*", **given
        )
        assert error["message"].startswith(f"There is no key '{key_id}' of an agent."), key_id


@pytest.mark.parametrize(
    ("tool", "arguments", "other"),
    [
        ("db.task.get", {"task_id": BUILD}, {"task_id": SORT}),
        ("db.job.get", {"job_id": BUILDING}, {"job_id": "00000000-0000-4000-8000-0000000000c2"}),
    ],
)
@pytest.mark.parametrize("subject", [("task", BUILD), ("project", WEBSITE)])
async def test_a_rule_about_a_task_or_project_follows_the_arguments(
    kit: Kit,
    tool: str,
    arguments: dict[str, Any],
    other: dict[str, Any],
    subject: tuple[str, str],
) -> None:
    named = {"subject_type": subject[0], "subject_id": subject[1]}
    await rule(kit, effect="deny", resource_pattern="db.*", **named)
    assert (await refused(kit, tool, PM, **arguments))["message"] == DENIED
    await result(kit, tool, PM, **other)


async def test_a_project_is_meant_by_its_slug_and_by_a_scope_too(kit: Kit) -> None:
    named = {"subject_type": "project", "subject_id": WEBSITE}
    await rule(kit, effect="deny", resource_pattern="db.*", **named)
    for tool, arguments in (
        ("db.project.get", {"slug": "website"}),
        ("db.project.get", {"project_id": WEBSITE}),
        ("db.preference.list", {"scope_type": "project", "scope_id": WEBSITE}),
    ):
        assert (await refused(kit, tool, PM_OF_ALICE, **arguments))["message"] == DENIED


async def test_a_rule_about_a_task_that_the_caller_does_not_reach_tells_nothing(kit: Kit) -> None:
    await rule(
        kit, effect="deny", resource_pattern="db.*", subject_type="project", subject_id=WEBSITE
    )
    loner = replace(PA_OF_BOB, user_id="nobody")
    foreign = await refused(kit, "db.task.get", loner, task_id=BUILD)
    absent = await refused(kit, "db.task.get", loner, task_id=ABSENT)
    assert foreign == absent
    assert foreign["type"] == "not_found"


async def test_conditions_narrow_a_rule(kit: Kit) -> None:
    await rule(
        kit,
        effect="deny",
        resource_pattern="db.task.update_status",
        conditions={"arguments": {"status": ["canceled"]}, "agent_types": ["pm"]},
    )
    await refused(kit, "db.task.update_status", PM, task_id=BUILD, status="canceled")
    await result(kit, "db.task.update_status", PM, task_id=BUILD, status="completed")


async def test_a_rule_holds_between_its_moments(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    between = {"not_before": "2126-01-01T00:00:00Z", "not_after": "2126-06-30T00:00:00Z"}
    await only(kit, effect="allow", resource_pattern="*", conditions=between)
    for now, allowed in (
        ("2125-12-31T23:59:59.000000Z", False),
        ("2126-03-01T00:00:00.000000Z", True),
        ("2126-07-01T00:00:00.000000Z", False),
    ):
        monkeypatch.setattr(domain, "timestamp", lambda now=now: now)
        outcome = await kit.call("db.task.get", PM, task_id=BUILD)
        assert (outcome.error is None) is allowed, now


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"resource_pattern": "db.tsk.get"}, "resource_pattern fits no tool. Did you mean"),
        ({"resource_pattern": "d*b*.*t*a*sk"}, "resource_pattern may have 4 stars at most"),
        ({"subject_type": "user", "subject_id": "eve"}, "There is no user 'eve'."),
        ({"subject_type": "agent", "subject_id": "boss"}, "must be pm, pa, worker or key:ID"),
        ({"subject_id": "alice"}, "subject_id must be empty where subject_type is system"),
        ({"conditions": {"weather": "rain"}}, "weather"),
        (
            {"conditions": {"arguments": {"tsk_id": ["x"]}}},
            "no tool of this pattern takes an argument tsk_id. Did you mean task_id?",
        ),
        ({"conditions": {"not_after": "tomorrow"}}, "must be a moment in UTC"),
        ({"effect": "maybe"}, "effect"),
        ({"action": "web.fetch"}, "action"),
    ],
)
async def test_a_rule_that_could_not_work_is_refused(
    kit: Kit, given: dict[str, Any], message: str
) -> None:
    whole = {"effect": "deny", "resource_pattern": "db.task.get", **given}
    assert message in (await refused(kit, "operator.access_rule.create", **whole))["message"]
    assert len((await result(kit, "operator.access_rule.list"))["entries"]) == 1


async def test_a_stored_rule_that_cannot_be_read_denies_everything(kit: Kit) -> None:
    broken = update(access_rules).values(conditions={"weather": "rain"})
    await kit.app.gate.database.write(lambda one: one.execute(broken))
    await rule(kit, effect="allow", resource_pattern="*")
    await refused(kit, "db.task.get", PM, task_id=BUILD)
    assert (await last_rows(kit, "db.task.get"))[-1].rule == f"access-rule:{EVERYTHING}"


async def test_rules_are_not_read_for_every_call(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await result(kit, "db.task.get", PM, task_id=BUILD)
    gone = delete(access_rules)
    await kit.app.gate.database.write(lambda one: one.execute(gone))
    await result(kit, "db.task.get", PM, task_id=BUILD)  # nobody said that they changed
    again = insert(access_rules).values(
        id=ABSENT,
        subject_type="system",
        subject_id="",
        action="mcp.tool.invoke",
        resource_pattern="db.task.*",
        effect="deny",
        priority=0,
        created_at="",
        updated_at="",
        updated_by="",
    )
    await kit.app.gate.database.write(lambda one: one.execute(again))
    await rule(kit, effect="allow", resource_pattern="db.job.*")
    await refused(kit, "db.task.get", PM, task_id=BUILD)


async def test_of_all_rules_those_about_the_caller_are_read(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await result(kit, "operator.user.create", user_id=f"user-{number}", display_name="U")
        about = {"subject_type": "user", "subject_id": f"user-{number}"}
        await rule(kit, effect="deny", resource_pattern="*", **about)
    own = await rule(
        kit, effect="allow", resource_pattern="*", subject_type="user", subject_id="alice"
    )
    read: list[str] = []

    def noted(row: Any) -> Any:
        read.append(row["id"])
        return domain.rule_of(row)

    monkeypatch.setattr(sql_access_rules, "rule_of", noted)
    await result(kit, "db.task.get", PM_OF_ALICE, task_id=BUILD)
    await result(kit, "db.task.get", PM_OF_ALICE, task_id=BUILD)
    assert sorted(read) == sorted([EVERYTHING, own])


async def test_a_rule_that_cannot_be_read_is_about_its_subject_alone(kit: Kit) -> None:
    of_bob = await rule(
        kit, effect="allow", resource_pattern="*", subject_type="user", subject_id="bob"
    )
    broken = update(access_rules).where(access_rules.c.id == of_bob)
    broken = broken.values(conditions={"weather": "rain"})
    await kit.app.gate.database.write(lambda one: one.execute(broken))
    await rule(kit, effect="allow", resource_pattern="db.task.get")
    await result(kit, "db.task.get", PM_OF_ALICE, task_id=BUILD)
    await refused(kit, "db.project.list", PM_OF_BOB)
    assert (await last_rows(kit, "db.project.list"))[-1].rule == f"access-rule:{of_bob}"


async def test_a_rule_is_changed_and_deleted(kit: Kit) -> None:
    made = await rule(kit, effect="deny", resource_pattern="db.task.*")
    await refused(kit, "db.task.get", PM, task_id=BUILD)
    changed = await result(kit, "operator.access_rule.update", rule_id=made, effect="allow")
    assert (changed["effect"], changed["resource_pattern"]) == ("allow", "db.task.*")
    await kit.app.gate.switches.read_if_changed()
    await result(kit, "db.task.get", PM, task_id=BUILD)
    await result(kit, "operator.access_rule.delete", rule_id=made)
    gone = await refused(kit, "operator.access_rule.update", rule_id=made, priority=1)
    assert gone["type"] == "not_found"
    assert (await refused(kit, "operator.access_rule.delete", rule_id=made))["type"] == "not_found"


@pytest.mark.parametrize("subject", [("task", SORT), ("project", OF_BOB)])
async def test_a_rule_about_somebody_elses_work_tells_nothing(
    kit: Kit, subject: tuple[str, str]
) -> None:
    named = {"subject_type": subject[0], "subject_id": subject[1]}
    await rule(kit, effect="deny", resource_pattern="*", **named)
    for tool, foreign, absent in (
        ("db.task.get", {"task_id": SORT}, {"task_id": ABSENT}),
        ("artifact.list", {"task_id": SORT}, {"task_id": ABSENT}),
        ("db.project.get", {"project_id": OF_BOB}, {"project_id": ABSENT}),
        (
            "db.preference.list",
            {"scope_type": "task", "scope_id": SORT},
            {"scope_type": "task", "scope_id": ABSENT},
        ),
    ):
        one = await kit.call(tool, PM_OF_ALICE, **foreign)
        other = await kit.call(tool, PM_OF_ALICE, **absent)
        assert one.body == other.body, tool


@pytest.mark.parametrize("caller", [PM_OF_ALICE, PM], ids=["user", "no-user"])
async def test_a_rule_about_a_project_covers_its_skills(kit: Kit, caller: Principal) -> None:
    place = {"task_id": BUILD, "content": "Be brief.", "scope": "project", "scope_id": WEBSITE}
    skill = (await result(kit, "skills.create", PM_OF_ALICE, **place))["id"]
    named = {"subject_type": "project", "subject_id": WEBSITE}
    await rule(kit, effect="deny", resource_pattern="skills.*", **named)
    task = (await result(kit, "operator.task.create", prompt="x", user_id="alice"))["id"]
    elsewhere = {"task_id": task}
    for tool, arguments in (
        ("skills.create", {"content": "x", "scope": "project", "scope_id": WEBSITE}),
        ("skills.get", {"skill_id": skill}),
        ("skills.update", {"skill_id": skill, "name": "N"}),
        ("skills.delete", {"skill_id": skill}),
    ):
        error = await refused(kit, tool, caller, **elsewhere, **arguments)
        assert error["message"] == DENIED, tool


@pytest.mark.parametrize("subject", [("user", "alice"), ("group", "designers")])
async def test_a_rule_about_a_user_covers_who_acts_for_it(
    kit: Kit, subject: tuple[str, str]
) -> None:
    await result(kit, "operator.group.add_member", group_id="designers", user_id="alice")
    named = {"subject_type": subject[0], "subject_id": subject[1]}
    await rule(kit, effect="deny", resource_pattern="skills.*", **named)
    for caller in (PM_OF_ALICE, PM):
        for tool, arguments in (("skills.create", {"content": "x"}), ("skills.list", {})):
            error = await refused(kit, tool, caller, task_id=BUILD, **arguments)
            assert error["message"] == DENIED, (tool, caller)


async def test_an_id_in_a_condition_may_be_written_in_capitals(kit: Kit) -> None:
    task = ID.format("b1").upper()
    only_it = {"conditions": {"arguments": {"task_id": [task]}}}
    await rule(kit, effect="deny", resource_pattern="db.task.get", **only_it)
    await refused(kit, "db.task.get", PM, task_id=BUILD)
    await result(kit, "db.task.get", PM, task_id=SORT)


@pytest.mark.parametrize("value", [5, 5.0, 2.5], ids=["integer", "decimal", "fraction"])
async def test_numbers_are_compared_by_value_and_not_with_booleans(kit: Kit, value: float) -> None:
    only_it = {"conditions": {"arguments": {"value": [value, 1]}}}
    await rule(kit, effect="deny", resource_pattern="db.preference.create", **only_it)
    new = {"scope_type": "task", "scope_id": BUILD, "value_type": "number"}
    for given in (value, float(value), 1, 1.0):
        error = await refused(kit, "db.preference.create", PM, **new, key="a", value=given)
        assert error["type"] == "access_denied", given
    await result(kit, "db.preference.create", PM, **new, key="a", value=6)
    flag = {**new, "value_type": "boolean"}
    await result(kit, "db.preference.create", PM, **flag, key="b", value=True)
