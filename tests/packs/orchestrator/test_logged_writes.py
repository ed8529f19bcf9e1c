"""The change log has exactly what a call has changed: every record, before and after."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Connection, Row, Table, select
from tests.packs.orchestrator.calls import SORTING, result
from tests.packs.orchestrator.node_calls import LOCAL, NODE

from toolgate.db.changes import RECORDS
from toolgate.db.tables import changes
from toolgate.gate.audit_records import timestamp
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import Principal
from toolgate.gate.tool import Effect
from toolgate.packs.orchestrator import OFFER
from toolgate.packs.orchestrator.sql import tables
from toolgate.packs.orchestrator.sql.artifact_tables import artifacts
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

DERIVED = {tables.history, tables.history_sizes, tables.skill_versions}
"""What is kept of records, or counted."""
LOGGED = {*tables.metadata.tables.values(), artifacts} - DERIVED
WRITES = [one for one in OFFER.tools if one.effect is not Effect.READ]
FIRST: dict[str, tuple[str, dict[str, Any]]] = {
    "operator.user.delete": ("operator.user.create", {"user_id": "carol", "display_name": "C"}),
    "operator.group.delete": (
        "operator.group.create",
        {"group_id": "writers", "display_name": "W"},
    ),
    "operator.job.finish": (
        "operator.job.lease",
        {"job_id": SORTING, "node_id": LOCAL, "seconds": 60},
    ),
}
"""What is called before a tool's example succeeds with the demo data."""
NO_RECORDS = {"operator.node.replace_key", "operator.skill.rescan"}
"""A key is no record, and nothing is found in the demo skills."""
State = dict[str, dict[str, Any]]


def state_of(connection: Connection) -> State:
    """Every record by its path; of those that are kept as deleted, nothing."""
    return {
        path_of(table, row): {str(name): value for name, value in row.items()}
        for table in LOGGED
        for row in connection.execute(select(table)).mappings()
        if not row.get("deleted")
    }


def path_of(table: Table, row: Mapping[Any, Any]) -> str:
    key = (str(row[column.name]) for column in table.primary_key)
    return "/".join((table.name.removeprefix("orchestrator_"), *key))


async def logged_after(kit: Kit, time: str) -> list[Row[Any]]:
    wanted = select(changes).where(changes.c.created_at >= time).order_by(changes.c.seq)
    return list(await kit.app.gate.database.read(lambda one: one.execute(wanted).all()))


def replayed(before: State, log: list[Row[Any]]) -> State:
    """The state after these changes, each of which finds what it says was there."""
    now = dict(before)
    for one in log:
        assert now.pop(one.path, None) == one.before, one.path
        if one.after is not None:
            now[one.path] = one.after
    return now


def caller_of(tool: AnyTool) -> Principal:
    return NODE if tool.name.startswith("worker_node.") else ADMIN


async def prepare(kit: Kit, tool: AnyTool) -> Mapping[str, Any]:
    """Let a tool's example succeed, and return its arguments."""
    if tool.name == "operator.project.delete":
        made = await result(kit, "operator.project.create", slug="new", display_name="New")
        return {"project_id": made["id"]}
    if tool.name in FIRST:
        name, arguments = FIRST[tool.name]
        await result(kit, name, **arguments)
    return tool.example


@pytest.mark.parametrize("tool", WRITES, ids=lambda tool: tool.name)
async def test_the_log_leads_from_what_was_to_what_is(kit: Kit, tool: AnyTool) -> None:
    arguments = await prepare(kit, tool)
    read = kit.app.gate.database.read
    before, time = await read(state_of), timestamp()
    await result(kit, tool.name, caller_of(tool), **arguments)
    log = await logged_after(kit, time)
    assert replayed(before, log) == await read(state_of)
    assert bool(log) == (tool.name not in NO_RECORDS)
    assert {(one.store, one.namespace) for one in log} <= {(RECORDS, OFFER.pack.name)}
    assert len({one.call for one in log}) <= 1


@pytest.mark.parametrize("tool", [one for one in WRITES if one.atomic], ids=lambda tool: tool.name)
async def test_a_dry_run_tells_what_would_change_and_changes_nothing(
    kit: Kit, tool: AnyTool
) -> None:
    arguments = await prepare(kit, tool)
    read = kit.app.gate.database.read
    before, time = await read(state_of), timestamp()
    outcome = await kit.call(tool.name, caller_of(tool), dry_run=True, **arguments)
    assert outcome.error is None, outcome.body
    assert outcome.diff is not None
    assert await read(state_of) == before
    assert await logged_after(kit, time) == []
    told = outcome.diff.omitted if caller_of(tool) is NODE else len(outcome.diff.changes)
    assert bool(told) == (tool.name not in NO_RECORDS)
