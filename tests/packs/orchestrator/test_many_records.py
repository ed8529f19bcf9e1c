"""Many records of each kind: a call looks at a bounded number of rows.

SQLite counts the steps of its virtual machine, PostgreSQL the rows that its plan went through. What
is asked of the large database is compared with what the same call takes in the small one.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from tests.effort import effort
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    result,
)
from tests.statements import noted_driver_reads

from toolgate.db import short_reads
from toolgate.db.prepared import CompiledStatement
from toolgate.gate.principal import Principal
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

MANY = effort(30_000, 100_000)
FIFTH = "10000000-0000-4000-8000-000000000005"
SKILL = "10000000-0000-4000-8000-000000000001"
MAX_ROWS = 2_000
"""Of PostgreSQL, whichever call it is; a page has 200 records at most."""
THEN = "2026-01-05T09:00:00.000000Z"
UUID = "'10000000-0000-4000-8000-' || substr('000000000000' || n, -12)"
PG_UUID = "'10000000-0000-4000-8000-' || lpad(n::text, 12, '0')"
BULK = {
    "orchestrator_users": "SELECT 'u' || n, 'User', '{then}' FROM s",
    "orchestrator_groups": "SELECT 'g' || n, 'Group', '{then}' FROM s",
    "orchestrator_members": "SELECT 'u' || n, 'g' || n FROM s",
    "orchestrator_projects": "SELECT {uuid}, 'p' || n, 'Project', NULL, 'p', {true}, 'u' || n, "
    "'{then}', '{then}' FROM s",
    "orchestrator_role_bindings": "SELECT 'user', 'u' || n, '{website}', 'viewer' FROM s",
    "orchestrator_settings": "SELECT 'bulk.k' || n, '1', 'number', 1, 1, {false}, '{then}', 'x' "
    "FROM s",
    "orchestrator_preferences": "SELECT 'user', CASE n % 2 WHEN 0 THEN 'alice' ELSE 'u' || n END, "
    "'bulk.k' || n, '1', 'number', 1, 1, {false}, '{then}', 'x' FROM s",
    "orchestrator_tasks": "SELECT {uuid}, 'pending', 'x', NULL, NULL, 'u' || n, '{website}', "
    "NULL, NULL, '{then}', '{then}' FROM s",
    "orchestrator_jobs": "SELECT {uuid}, {uuid}, 'queued', NULL, NULL, NULL, NULL, NULL, NULL, "
    "'{then}', '{then}' FROM s",
    "orchestrator_skills": "SELECT {uuid}, 1, 'Skill', 'x', 'user', 'u' || n, 'u' || n, NULL, "
    "'{then}', '{then}' FROM s",
    "orchestrator_skill_versions": "SELECT '{skill}', n, 'Skill', 'x', 'global', '', 'x', '{then}' "
    "FROM s",
    "orchestrator_artifacts": "SELECT CASE n % 2 WHEN 0 THEN '{build}' ELSE {uuid} END, "
    "'bulk/' || n, 'b/' || n, 1, 'text/plain', '0', '{then}', '{then}', 'x' FROM s",
    "orchestrator_access_rules": "SELECT {uuid}, CASE n % 3 WHEN 0 THEN 'user' WHEN 1 THEN 'group' "
    "ELSE 'project' END, CASE n % 3 WHEN 0 THEN 'u' || n WHEN 1 THEN 'g' || n ELSE {uuid} END, "
    "'mcp.tool.invoke', '*', 'deny', 0, NULL, '{then}', '{then}', 'x' FROM s",
    "orchestrator_nodes": "SELECT {uuid}, 'n' || n, 'Node', NULL, '{{}}', {false}, '{{}}', "
    "'01JGFJJZ000000000000000000', NULL, NULL, NULL, NULL, '{then}', NULL, NULL, '{then}', "
    "'{then}' FROM s",
    "orchestrator_node_availability": "SELECT {uuid}, 'model', 'm' || n, '', 'available', '{then}' "
    "FROM s",
    "orchestrator_models": "SELECT {uuid}, 'm' || n, NULL, NULL, '{then}', '{then}' FROM s",
    "orchestrator_model_versions": "SELECT {uuid}, '1', '{{}}', '{{}}', '{then}' FROM s",
    "orchestrator_model_artifacts": "SELECT {uuid}, {uuid}, '1', 'gguf', '0', 1, NULL, NULL, "
    "'{then}' FROM s",
    "orchestrator_record_history": "SELECT 'system', '', 'models.cache.max_bytes', n, '1', '2', "
    "'x', NULL, '{then}' FROM s",
}
COLUMNS = {
    "orchestrator_skill_versions": "skill_id, version, name, content, scope, scope_id, changed_by, "
    "changed_at",
    "orchestrator_record_history": "scope_type, scope_id, key, version, old, new, changed_by, "
    "reason, changed_at",
    "orchestrator_settings": "key, value, value_type, size, version, deleted, updated_at, "
    "updated_by",
    "orchestrator_preferences": "scope_type, scope_id, key, value, value_type, size, version, "
    "deleted, updated_at, updated_by",
}
CALLS: list[tuple[str, Principal, dict[str, Any]]] = [
    ("db.system_setting.get", PM, {"key": "models.cache.max_bytes"}),
    ("db.system_setting.list", PM, {"limit": 50}),
    ("db.system_setting.list", PM, {"limit": 50, "key_prefix": "bulk.k5"}),
    ("db.preference.get", PM, {"scope_type": "system", "key": "language.preferred"}),
    ("db.preference.list", PM_OF_ALICE, {"scope_type": "user", "scope_id": "alice", "limit": 50}),
    ("db.preference.effective", PM, {"task_id": SORT, "include_sources": True}),
    ("db.task.get", PM_OF_ALICE, {"task_id": BUILD}),
    ("db.job.get", PM_OF_ALICE, {"job_id": BUILDING}),
    ("db.project.get", PM_OF_ALICE, {"slug": "website"}),
    ("db.project.get", PM_OF_ALICE, {"project_id": WEBSITE}),
    ("db.project.list", PM_OF_ALICE, {"limit": 50}),
    ("db.project.list", PA_OF_ALICE, {"limit": 50, "q": "web"}),
    ("db.project.list", replace(PM_OF_ALICE, bound={"task_id": BUILD}), {"limit": 49}),
    ("db.project.list", replace(PM_OF_ALICE, bound={"job_id": BUILDING}), {"limit": 48}),
    ("db.preference.effective", PM_OF_BOB, {"task_id": BUILD}),
    ("db.task.update_status", PM_OF_ALICE, {"task_id": BUILD, "status": "running"}),
    ("db.job.update_status", PM_OF_ALICE, {"job_id": BUILDING, "status": "running"}),
    ("skills.list", replace(PM_OF_ALICE, bound={"task_id": BUILD}), {"task_id": BUILD}),
    ("skills.list", PM_OF_ALICE, {"task_id": BUILD, "limit": 50}),
    ("operator.task.list", ADMIN, {"limit": 50}),
    ("operator.task.list", ADMIN, {"limit": 50, "user_id": "alice"}),
    ("operator.user.list", ADMIN, {"limit": 50}),
    ("operator.role_binding.list", ADMIN, {"limit": 50, "project_id": WEBSITE}),
    ("operator.job.list", ADMIN, {"limit": 50}),
    ("operator.group.list", ADMIN, {"limit": 50}),
    ("operator.group.list_members", ADMIN, {"limit": 50, "group_id": "designers"}),
    ("operator.project.list", ADMIN, {"limit": 50}),
    ("operator.access_rule.list", ADMIN, {"limit": 50}),
    ("operator.preference.history", ADMIN, {"scope_type": "system", "key": "language.preferred"}),
    ("operator.system_setting.history", ADMIN, {"key": "models.cache.max_bytes", "limit": 50}),
    ("operator.skill.versions", ADMIN, {"limit": 50, "skill_id": SKILL}),
    ("artifact.list", PM_OF_ALICE, {"task_id": BUILD, "limit": 50}),
    ("artifact.list", PM_OF_ALICE, {"task_id": BUILD, "limit": 50, "prefix": "bulk/5"}),
    ("artifact.get", PM_OF_ALICE, {"task_id": BUILD, "path": "site/index.html"}),
    ("artifact.put", PM_OF_BOB, {"task_id": SORT, "path": "new", "content_bytes_base64": ""}),
    ("node.list", PM_OF_ALICE, {"limit": 50}),
    ("node.get", PM_OF_ALICE, {"node_slug": "n5"}),
    ("model.list", PM_OF_ALICE, {"limit": 50}),
    ("model.get", PM_OF_ALICE, {"model_id": FIFTH}),
]


def fill(connection: Connection) -> None:
    sqlite = connection.dialect.name == "sqlite"
    words = {
        "then": THEN,
        "website": WEBSITE,
        "build": BUILD,
        "skill": SKILL,
        "uuid": UUID if sqlite else PG_UUID,
        "true": "1" if sqlite else "true",
        "false": "0" if sqlite else "false",
    }
    for table, rows in BULK.items():
        columns = f"({COLUMNS[table]})" if table in COLUMNS else ""
        series = (
            "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s "
            f"WHERE n < {MANY}) INSERT INTO {table} {columns} {rows.format(**words)}"
        )
        connection.execute(text(series.replace("::", "\\:\\:")))
    connection.execute(text("ANALYZE"))


class Steps:
    """How many instructions SQLite's virtual machine has run, in tens."""

    def __init__(self) -> None:
        self.number = 0

    def count(self) -> int:
        self.number += 1
        return 0


@contextmanager
def counted_steps() -> Generator[Steps]:
    steps = Steps()

    def watch(connection: Any, _: Any) -> None:
        connection.set_progress_handler(steps.count, 10)

    def count(_: Any) -> int:
        return steps.count()

    event.listen(Engine, "connect", watch)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Short reads have a handler of their own, in the place of the one above.
            patch.setattr(short_reads, "STEPS", 10)
            patch.setattr(short_reads.ShortReads, "_stop", count)
            yield steps
    finally:
        event.remove(Engine, "connect", watch)


@contextmanager
def noted_reads() -> Generator[list[tuple[str, Any]]]:
    """Every SELECT with its parameters."""
    reads: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        reads.append((statement, parameters))

    first = CompiledStatement.first

    def looked_up(self: CompiledStatement, *given: Any) -> Any:
        reads.append((self.text, given[-1]))
        return first(self, *given)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            noted_driver_reads(lambda *read: reads.append(read)),
        ):
            patch.setattr(CompiledStatement, "first", looked_up)
            yield reads
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def rows_of(plan: dict[str, Any]) -> float:
    """All rows that the scans of a plan went through."""
    inner = sum(rows_of(one) for one in plan.get("Plans", []))
    if "Scan" not in plan["Node Type"]:
        return inner
    each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return inner + each * plan["Actual Loops"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_sqlite_takes_as_many_steps_as_with_few_records(
    tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        await kit.app.gate.database.write(fill)
    with counted_steps() as steps:  # those of the filling would take longer than all else
        async with opened_kit(tmp_path, **settings) as kit:
            taken: dict[str, int] = {}
            for tool, caller, arguments in CALLS:
                await result(kit, tool, caller, **arguments)  # compiled and cached once
                before = steps.number
                await result(kit, tool, caller, **arguments)
                taken[f"{tool} {arguments}"] = steps.number - before
    # A page of 200 records takes some thousand instructions; a scan of 30,000 at least 90,000.
    assert min(taken.values()) > 0
    assert {call: tens for call, tens in taken.items() if tens > 3_000} == {}


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_postgresql_goes_through_a_bounded_number_of_rows(
    tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {
        "database__url": database_url,
        "packs__enabled": ["orchestrator"],
        "database__prepared_statements": False,  # so that all statements are of one driver
    }
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        database = kit.app.gate.database
        await database.write(fill)
        touched: dict[str, float] = {}
        for tool, caller, arguments in CALLS:
            with noted_reads() as reads:
                await result(kit, tool, caller, **arguments)
            selects = [one for one in reads if is_read_of_the_pack(one[0])]
            assert selects, tool
            # Some reads lock what is written next, which only a writer may.
            touched[f"{tool} {arguments}"] = await database.write(
                lambda one, selects=selects: sum(explained(one, *each) for each in selects)
            )
    assert {call: rows for call, rows in touched.items() if rows > MAX_ROWS} == {}


def is_read_of_the_pack(statement: str) -> bool:
    return statement.lstrip().startswith(("SELECT", "WITH")) and "orchestrator_" in statement


def explained(connection: Connection, statement: str, parameters: Any) -> float:
    plan = connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters
    ).scalar_one()
    return rows_of(plan[0]["Plan"])


async def test_effective_preferences_of_a_task_are_one_statement(kit: Kit) -> None:
    await result(kit, "db.task.get", PM, task_id=SORT)  # the access rules are read once
    with noted_reads() as reads:
        await result(kit, "db.preference.effective", PM, task_id=SORT)
    assert len({one for one, _ in reads if is_read_of_the_pack(one)}) == 1
