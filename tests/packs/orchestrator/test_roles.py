"""Roles in a project: four of them change what belongs to it, a viewer only reads."""

import base64
from typing import Any

import pytest
from sqlalchemy import insert, update
from tests.packs.orchestrator.calls import (
    BUILD,
    BUILDING,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    PUBLISH,
    SORT,
    WEBSITE,
    refused,
    result,
)
from tests.statements import noted_statements

from toolgate.packs.orchestrator.sql.tables import bindings, tasks
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

ONLY_READS = "Your role in this project only reads: "
TYPED = {"key": "custom.a", "value": "x", "value_type": "string"}
TASK = {"scope_type": "task", "scope_id": BUILD}
PROJECT = {"scope_type": "project", "scope_id": WEBSITE}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("db.preference.create", {**TASK, **TYPED}),
    ("db.preference.update", {**TASK, **TYPED}),
    ("db.preference.delete", {**TASK, "key": "custom.a"}),
    ("db.preference.create", {**PROJECT, **TYPED}),
    ("db.preference.update", {**PROJECT, **TYPED}),
    ("db.preference.delete", {**PROJECT, "key": "custom.a"}),
    ("skills.create", {"task_id": BUILD, "content": "# x", "scope": "project"}),
    (
        "artifact.put",
        {"task_id": BUILD, "path": "a", "content_bytes_base64": base64.b64encode(b"x").decode()},
    ),
    ("db.job.update_status", {"job_id": BUILDING, "status": "completed"}),
    ("db.task.update_status", {"task_id": BUILD, "status": "completed"}),
]
"""Each changes something of alice's task, or of the project that it is in; in this order."""


async def write(kit: Kit, *statements: Any) -> None:
    await kit.app.gate.database.write(lambda one: [one.execute(each) for each in statements])


def bound(subject_type: str, subject_id: str, role: str) -> Any:
    return insert(bindings).values(
        subject_type=subject_type, subject_id=subject_id, project_id=WEBSITE, role=role
    )


def of_designers(role: str) -> Any:
    return update(bindings).where(bindings.c.subject_id == "designers").values(role=role)


@pytest.mark.parametrize("role", ["owner", "admin", "operator", "member"])
async def test_a_role_that_writes_changes_what_belongs_to_the_project(kit: Kit, role: str) -> None:
    await write(kit, of_designers(role))
    for tool, arguments in WRITES:
        await result(kit, tool, PM_OF_BOB, **arguments)


async def test_a_viewer_reads_and_is_told_why_it_does_not_write(kit: Kit) -> None:
    assert (await result(kit, "db.task.get", PM_OF_BOB, task_id=BUILD))["id"] == BUILD
    for tool, arguments in WRITES:
        error = await refused(kit, tool, PM_OF_BOB, **arguments)
        assert error["type"] == "access_denied", tool
        assert error["message"].startswith(ONLY_READS), tool
    assert (await result(kit, "db.task.get", task_id=BUILD))["status"] == "running"
    assert (await result(kit, "db.job.get", job_id=BUILDING))["status"] == "running"
    assert (await result(kit, "db.preference.list", **TASK))["entries"] == []


async def test_the_best_of_several_roles_counts(kit: Kit) -> None:
    await write(kit, bound("user", "bob", "member"))
    await result(kit, "db.preference.create", PM_OF_BOB, **TASK, **TYPED)
    await write(kit, of_designers("operator"))
    demoted = update(bindings).where(bindings.c.subject_id == "bob").values(role="viewer")
    await write(kit, demoted)
    await result(kit, "db.preference.create", PM_OF_BOB, **PROJECT, **TYPED)


async def test_who_created_a_task_writes_it_whatever_the_role(kit: Kit) -> None:
    await write(kit, update(tasks).where(tasks.c.id == PUBLISH).values(created_by="bob"))
    await result(kit, "db.task.update_status", task_id=BUILD, status="completed")
    given = {"task_id": PUBLISH, "status": "running"}
    assert (await result(kit, "db.task.update_status", PM_OF_BOB, **given))["status"] == "running"
    await write(kit, update(tasks).where(tasks.c.id == SORT).values(project_id=None))
    await result(
        kit, "artifact.put", PM_OF_BOB, task_id=SORT, path="a", content_bytes_base64="YQ=="
    )


async def test_a_viewer_keeps_skills_of_its_own_and_changes_none_of_the_project(kit: Kit) -> None:
    await write(kit, of_designers("member"))
    made = await result(
        kit, "skills.create", PM_OF_BOB, task_id=SORT, content="# x", scope="project",
        scope_id=WEBSITE,
    )  # fmt: skip
    await write(kit, of_designers("viewer"))
    given = {"task_id": SORT, "skill_id": made["id"]}
    assert (await result(kit, "skills.get", PM_OF_BOB, **given))["content"] == "# x"
    for tool, more in (("skills.update", {"name": "N"}), ("skills.delete", {})):
        error = await refused(kit, tool, PM_OF_BOB, **given, **more)
        assert error["message"].startswith(ONLY_READS), tool
    own = await result(kit, "skills.create", PM_OF_BOB, task_id=BUILD, content="# x")
    moved = {"task_id": BUILD, "skill_id": own["id"], "scope": "project"}
    error = await refused(kit, "skills.update", PM_OF_BOB, **moved)
    assert error["message"].startswith(ONLY_READS)
    assert (await result(kit, "skills.update", ADMIN, **given, name="N"))["name"] == "N"


async def test_without_a_user_every_task_is_written(kit: Kit) -> None:
    for who in (PM, ADMIN):
        for path in ("a", "b"):
            given = {"task_id": BUILD, "path": path, "content_bytes_base64": "YQ=="}
            assert (await result(kit, "artifact.put", who, **given))["path"] == path


async def test_whether_a_role_writes_takes_no_statement_of_its_own(kit: Kit) -> None:
    taken: list[int] = []
    given = {"task_id": BUILD, "status": "running"}
    for who in (ADMIN, PM_OF_ALICE):
        await result(kit, "db.task.update_status", who, **given)
        with noted_statements() as noted:
            await result(kit, "db.task.update_status", who, **given)
        taken.append(sum("orchestrator_" in one for one in noted))
    assert taken == [2, 2], "the task, and what it depends on"
