"""Demo data of pack `orchestrator`: two people and their work; nodes are in `demo_nodes.py`."""

import hashlib
from typing import Any

import orjson
from sqlalchemy import Connection, Table, func, insert, select

from toolgate.gate.offer import Site
from toolgate.packs.orchestrator import demo_nodes
from toolgate.packs.orchestrator.folding import folded
from toolgate.packs.orchestrator.sql import tables
from toolgate.packs.orchestrator.sql.artifact_tables import artifacts
from toolgate.packs.orchestrator.world import OrchestratorWorld

THEN = "2026-01-05T09:00:00.000000Z"
ID = "00000000-0000-4000-8000-0000000000{}"
WEBSITE, OF_ALICE, OF_BOB = ID.format("a1"), ID.format("a2"), ID.format("a3")
BUILD, SORT, PUBLISH = ID.format("b1"), ID.format("b2"), ID.format("b3")
NOTES = ID.format("d1")


def _project(id: str, slug: str, name: str, text: str, default_of: str | None) -> dict[str, Any]:
    return {
        "id": id,
        "slug": slug,
        "display_name": name,
        "description": text,
        "folded": folded(f"{slug}\n{name}\n{text}"),
        "is_active": True,
        "default_of": default_of,
        "created_at": THEN,
        "updated_at": THEN,
    }


def _task(id: str, status: str, prompt: str, user: str, project: str) -> dict[str, Any]:
    return {
        "id": id,
        "status": status,
        "prompt": prompt,
        "created_by": user,
        "project_id": project,
        "created_at": THEN,
        "updated_at": THEN,
    }


def _job(id: str, task: str, status: str, node: str | None) -> dict[str, Any]:
    return {
        "id": id,
        "task_id": task,
        "status": status,
        "node_id": node,
        "payload": {"steps": ["build", "test"]},
        "started_at": THEN if status == "running" else None,
        "created_at": THEN,
        "updated_at": THEN,
    }


def _record(value: Any, value_type: str) -> dict[str, Any]:
    text = orjson.dumps(value).decode()
    return {
        "value": text,
        "value_type": value_type,
        "size": len(text.encode()),
        "version": 1,
        "deleted": False,
        "updated_at": THEN,
        "updated_by": "demo",
    }


SKILL: dict[str, Any] = {
    "version": 1,
    "name": "Release notes",
    "content": "# Release notes\n\nOne line for each change, the user's words first.\n",
    "scope": "user",
    "scope_id": "alice",
}
STYLE = {"scope_type": "user", "scope_id": "alice", "key": "output.summary_style"}
LANGUAGE = {"scope_type": "system", "scope_id": "", "key": "language.preferred"}
LINES = {"scope_type": "project", "scope_id": WEBSITE, "key": "standards.markdown.line_length"}

PAGE = b"<!doctype html>\n<title>Start page</title>\n<h1>Welcome</h1>\n"
ARTIFACT: dict[str, Any] = {
    "task_id": BUILD,
    "path": "site/index.html",
    "size_bytes": len(PAGE),
    "content_type": "text/html",
    "checksum_sha256": hashlib.sha256(PAGE).hexdigest(),
    "created_at": THEN,
    "updated_at": THEN,
    "updated_by": "demo",
}

ROWS: tuple[tuple[Table, list[dict[str, Any]]], ...] = (
    (
        tables.users,
        [
            {"id": "alice", "display_name": "Alice", "created_at": THEN},
            {"id": "bob", "display_name": "Bob", "created_at": THEN},
        ],
    ),
    (tables.groups, [{"id": "designers", "display_name": "Designers", "created_at": THEN}]),
    (tables.members, [{"user_id": "bob", "group_id": "designers"}]),
    (
        tables.projects,
        [
            _project(WEBSITE, "website", "Website", "The public website.", None),
            _project(OF_ALICE, "default-alice", "Alice", "Alice's own work.", "alice"),
            _project(OF_BOB, "default-bob", "Bob", "Bob's own work.", "bob"),
        ],
    ),
    (
        tables.bindings,
        [
            {"subject_type": "user", "subject_id": "alice", "project_id": WEBSITE, "role": "owner"},
            {
                "subject_type": "group",
                "subject_id": "designers",
                "project_id": WEBSITE,
                "role": "viewer",
            },
        ],
    ),
    (
        tables.tasks,
        [
            _task(BUILD, "running", "Build the start page.", "alice", WEBSITE),
            _task(SORT, "pending", "Sort the photos by year.", "bob", OF_BOB),
            _task(PUBLISH, "pending", "Publish the start page.", "alice", WEBSITE),
        ],
    ),
    (tables.dependencies, [{"task_id": PUBLISH, "depends_on": BUILD}]),
    (
        tables.jobs,
        [
            _job(ID.format("c1"), BUILD, "running", "worker-01"),
            _job(ID.format("c2"), SORT, "queued", None),
        ],
    ),
    (tables.settings, [{"key": "models.cache.max_bytes", **_record(107374182400, "number")}]),
    (
        tables.preferences,
        [
            {**STYLE, **_record("bullets", "string")},
            {**LANGUAGE, **_record("en", "string")},
            {**LINES, **_record(100, "number")},
        ],
    ),
    (
        tables.skills,
        [{"id": NOTES, **SKILL, "owner_id": "alice", "created_at": THEN, "updated_at": THEN}],
    ),
    (
        tables.skill_versions,
        [{"skill_id": NOTES, **SKILL, "changed_by": "demo", "changed_at": THEN}],
    ),
    *demo_nodes.ROWS,
)


async def load(world: OrchestratorWorld, site: Site) -> int:
    """Store the demo data, if the pack has no users yet."""
    blob = world.blob_names.new()

    def is_used(connection: Connection) -> bool:
        return bool(connection.scalar(select(func.count()).select_from(tables.users)))

    def work(connection: Connection) -> int:
        if is_used(connection):
            return 0
        for table, rows in ROWS:
            connection.execute(insert(table), rows)
        connection.execute(insert(artifacts), {**ARTIFACT, "storage_ref": blob})
        return sum(len(rows) for _, rows in ROWS) + 1

    if await site.database.read(is_used):
        return 0
    await world.blobs.put(blob, PAGE)
    return await site.database.write(work)
