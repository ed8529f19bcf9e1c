"""An id in capitals is the same id: every tool, caller and rule decides and audits alike."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    WEBSITE,
    WORKER,
    result,
)

from toolgate.db.tables import audit
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import Principal
from toolgate.gate.tool import Effect
from toolgate.packs.orchestrator.access_rules import EVERYTHING
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

RUN = "abcdefab-cdef-4abc-8def-abcdefabcdef"
IDS: dict[str, str | list[str]] = {
    "task_id": BUILD,
    "job_id": BUILDING,
    "project_id": WEBSITE,
    "run_id": RUN,
    "skill_id": "00000000-0000-4000-8000-0000000000d1",
    "model_id": "00000000-0000-4000-8000-0000000000f1",
    "rule_id": EVERYTHING,
    "depends_on": [BUILD],
}
"""By the name of the argument; all of the demo data but the run."""
SCOPES = [
    {"scope_type": "task", "scope_id": BUILD},
    {"scope_type": "project", "scope_id": WEBSITE},
    {"scope": "project", "scope_id": WEBSITE},
    {"subject_type": "task", "subject_id": BUILD},
    {"subject_type": "project", "subject_id": WEBSITE},
]
NO_UUIDS = {"user_id", "group_id", "node_id"}
"""Ids that somebody chose, which are never in capitals."""
ROLE_BINDINGS = "operator.role_binding."
"""Their subjects are users and groups."""
CALLERS = {
    "admin": ADMIN,
    "pm": PM,
    "pm of alice": PM_OF_ALICE,
    "pm of a task": replace(PM_OF_ALICE, bound={"task_id": BUILD}),
    "pm of a project": replace(PM_OF_ALICE, bound={"project_id": WEBSITE}),
    "pm of a job": replace(PM_OF_ALICE, bound={"job_id": BUILDING}),
    "pa": PA_OF_ALICE,
    "worker": WORKER,
}
IN_AUDIT = ("task_id", "project_id", "job_id", "run_id")
COLUMNS = ("tool_name", "decision", "rule", "error_type", *IN_AUDIT)
RULES: dict[str, dict[str, Any] | None] = {
    "none": None,
    "user": {"subject_type": "user", "subject_id": "alice"},
    "project": {"subject_type": "project", "subject_id": WEBSITE},
    "task": {"subject_type": "task", "subject_id": BUILD},
    "id": {"conditions": {"arguments": {"task_id": [BUILD]}}},
    "scope": {"conditions": {"arguments": {"scope_id": [WEBSITE, BUILD]}}},
}


def upper(value: str | list[str]) -> str | list[str]:
    return value.upper() if isinstance(value, str) else [one.upper() for one in value]


def calls_of(tool: AnyTool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Arguments with an id in lower case, and the same in capitals."""
    fields = tool.input.model_fields
    base = {name: IDS.get(name, value) for name, value in tool.example.items()}
    if tool.name == "db.project.get":
        base = {}
    for name in sorted({*IDS} & {*fields}):
        lower = base | {name: IDS[name]}
        yield lower, lower | {name: upper(IDS[name])}
    for scope in SCOPES:
        if scope.keys() <= fields.keys() and not tool.name.startswith(ROLE_BINDINGS):
            name = "subject_id" if "subject_id" in scope else "scope_id"
            lower = base | scope
            yield lower, lower | {name: scope[name].upper()}


async def ends(kit: Kit, caller: Principal, calls: list[tuple[AnyTool, Any]]) -> list[Any]:
    """What each call came to, and the audit rows of all."""
    ended: list[Any] = []
    last = select(func.max(audit.c.seq))
    await kit.app.gate.audit.flush()
    before = await kit.app.gate.database.read(lambda one: one.scalar(last)) or 0
    for tool, arguments in calls:
        dry_run = tool.effect is not Effect.READ
        outcome = await kit.send(tool.name, arguments, caller, dry_run=dry_run)
        body = outcome.body.get("error") or "ok"
        ended.append((tool.name, body))
    await kit.app.gate.audit.flush()
    rows = select(*(audit.c[name] for name in COLUMNS)).where(audit.c.seq > before)
    found = await kit.app.gate.database.read(lambda one: one.execute(rows).all())
    return [*ended, *sorted(tuple(map(str, row)) for row in found)]


@pytest.mark.parametrize("name", RULES)
async def test_a_call_ends_alike_however_its_ids_are_written(kit: Kit, name: str) -> None:
    if (about := RULES[name]) is not None:
        await result(
            kit, "operator.access_rule.create", effect="deny", resource_pattern="*", **about
        )
        await kit.app.gate.switches.read_if_changed()
    for label, caller in CALLERS.items():
        if caller is ADMIN and about is not None:
            continue  # no rule is about admins
        visible = [one for one in kit.app.gate.visible(caller) if one.pack.name == "orchestrator"]
        pairs = [(tool, pair) for tool in visible for pair in calls_of(tool)]
        assert len(pairs) >= 8, label
        lower = await ends(kit, caller, [(tool, pair[0]) for tool, pair in pairs])
        capitals = await ends(kit, caller, [(tool, pair[1]) for tool, pair in pairs])
        assert lower == capitals, label
        assert len(lower) == 2 * len(pairs), label


async def test_every_argument_that_is_a_uuid_is_among_those_that_were_tried(kit: Kit) -> None:
    scoped = {"scope_id", "subject_id"}
    for tool in kit.app.gate.visible(ADMIN):
        ids = {name for name in tool.input.model_fields if name.endswith("_id")}
        if tool.pack.name == "orchestrator":
            assert ids <= {*IDS} | scoped | NO_UUIDS, tool.name


async def test_a_rule_about_a_project_or_task_is_not_evaded_in_capitals(kit: Kit) -> None:
    for subject_type, subject_id in (("project", WEBSITE), ("task", BUILD)):
        made = await result(
            kit,
            "operator.access_rule.create",
            effect="deny",
            resource_pattern="db.*",
            subject_type=subject_type,
            subject_id=subject_id.upper(),
        )
        assert made["subject_id"] == subject_id
        await kit.app.gate.switches.read_if_changed()
        place = {"scope_type": subject_type, "scope_id": subject_id.upper()}
        value = {"value": 1, "value_type": "number"}
        for tool, more in (
            ("db.preference.list", {}),
            ("db.preference.get", {"key": "custom.a"}),
            ("db.preference.create", {"key": "custom.a", **value}),
            ("db.preference.update", {"key": "custom.a", **value}),
            ("db.preference.delete", {"key": "custom.a"}),
        ):
            outcome = await kit.send(tool, {**place, **more}, PM_OF_ALICE)
            assert outcome.body["error"]["type"] == "access_denied", tool
        rows = [row for row in await kit.audit_rows() if row["decision"] == "deny"]
        assert {row[f"{subject_type}_id"] for row in rows[-5:]} == {subject_id}
