"""Artifacts: what is stored is what is read, under exactly its path, by who reaches the task."""

import base64
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    SORTING,
    WORKER,
    refused,
    result,
)
from tests.statements import noted_statements

from toolgate.packs.orchestrator.artifacts.paths import end_of
from toolgate.packs.orchestrator.sql import artifacts as sql
from toolgate.packs.orchestrator.sql.artifact_tables import artifacts
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

DEMO = "site/index.html"
FIELDS = {
    "path",
    "storage_ref",
    "size_bytes",
    "content_type",
    "checksum_sha256",
    "created_at",
    "updated_at",
}
NO_TASK = {"type": "not_found", "message": "Task not found"}
NO_ARTIFACT = {"type": "not_found", "message": "Artifact not found"}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def put(kit: Kit, path: str, data: bytes = b"x", who: Any = PM, **more: Any) -> Any:
    content = {"content_bytes_base64": encoded(data), "task_id": BUILD, **more}
    return await result(kit, "artifact.put", who, path=path, **content)


async def content(kit: Kit, path: str, who: Any = PM, task: str = BUILD) -> bytes:
    outcome = await kit.call("artifact.get", who, task_id=task, path=path)
    assert outcome.error is None, outcome.body
    assert outcome.attached is not None
    return outcome.attached.data


async def paths(kit: Kit, task: str = BUILD, **arguments: Any) -> list[str]:
    """The paths on every page."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await result(kit, "artifact.list", task_id=task, **arguments, **cursor)
        assert all(one.keys() == FIELDS for one in page["items"])
        found += [one["path"] for one in page["items"]]
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


def stored_files(folder: Path) -> list[Path]:
    return [one for one in (folder / "blobs").rglob("*") if one.is_file()]


async def test_what_is_put_is_got_with_its_checksum(kit: Kit) -> None:
    data = bytes(range(256)) * 17
    made = await put(kit, "out/report.bin", data, content_type="application/x-report")
    assert made.keys() == FIELDS
    assert (made["size_bytes"], made["content_type"]) == (len(data), "application/x-report")
    assert made["checksum_sha256"] == hashlib.sha256(data).hexdigest()
    got = await result(kit, "artifact.get", WORKER, task_id=BUILD, path="out/report.bin")
    assert got == made
    assert await content(kit, "out/report.bin", WORKER) == data
    assert (
        await content(kit, DEMO)
        == b"<!doctype html>\n<title>Start page</title>\n<h1>Welcome</h1>\n"
    )


async def test_an_empty_file_is_one(kit: Kit) -> None:
    assert (await put(kit, "empty", b""))["size_bytes"] == 0
    assert await content(kit, "empty") == b""


async def test_a_path_has_one_artifact_the_last_one(kit: Kit) -> None:
    first = await put(kit, "a", b"one", content_type="text/plain")
    second = await put(kit, "a", b"two")
    assert second["created_at"] == first["created_at"] < second["updated_at"]
    assert second["content_type"] == "application/octet-stream"
    assert second["storage_ref"] != first["storage_ref"]
    assert await content(kit, "a") == b"two"
    assert await paths(kit) == ["a", DEMO]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "is required"),
        ("..", "must not have . or .. as a part"),
        ("a/../b", "must not have . or .. as a part"),
        ("./a", "must not have . or .. as a part"),
        ("/etc/passwd", "must be relative: leave out the / at its beginning"),
        ("a//b", "must have a name between two / and none at its end (a/b, not a//b or a/)"),
        ("a/", "must have a name between two / and none at its end (a/b, not a//b or a/)"),
        ("a\\b", "must have / between its parts, not \\"),
        ("a\0b", "must not have control characters such as NUL or a line end"),
        ("a\nb", "must not have control characters such as NUL or a line end"),
        ("ä" * 513, "must have at most 1024 bytes as UTF-8"),
    ],
    ids=["empty", "up", "in", "here", "abs", "two", "end", "back", "nul", "line", "long"],
)
async def test_a_path_that_could_lead_elsewhere_is_refused(kit: Kit, path: str, rule: str) -> None:
    for tool, more in (("artifact.put", {"content_bytes_base64": ""}), ("artifact.get", {})):
        error = await refused(kit, tool, PM, task_id=BUILD, path=path, **more)
        assert (error["type"], error["message"]) == ("invalid_arguments", f"path {rule}")
    assert await paths(kit) == [DEMO]


@pytest.mark.parametrize("code", [0x202E, 0x200B, 0x2028, 0x2029, 0xAD, 0xFEFF, 0xE0041], ids=hex)
async def test_a_path_with_characters_that_are_not_seen_is_refused(kit: Kit, code: int) -> None:
    path = f"out/re{chr(code)}port.md"
    error = await refused(
        kit, "artifact.put", PM, task_id=BUILD, path=path, content_bytes_base64=""
    )
    assert error["type"] == "invalid_arguments"
    assert error["message"].startswith(f"path must not have the character U+{code:04X}: ")
    assert await paths(kit) == [DEMO]


async def test_paths_are_compared_by_bytes(kit: Kit) -> None:
    alike = ["A", "a", "caf\u00e9", "cafe\u0301", "...", "a b", "a%2e", "ä" * 512, "\U0001f40d"]
    for path in alike:
        await put(kit, path, path.encode())
    for path in alike:
        assert await content(kit, path) == path.encode()
    assert await paths(kit, limit=2) == sorted([*alike, DEMO], key=str.encode)


@pytest.mark.parametrize(
    "text",
    ["aGk", "aGk=\n", " aGk=", "aG k=", "a===", "====", "aGl=", "aGk=aGk=", "aGk-", "aGkä", "=aGk"],
)
async def test_base64_is_read_strictly(kit: Kit, text: str) -> None:
    error = await refused(
        kit, "artifact.put", PM, task_id=BUILD, path="a", content_bytes_base64=text
    )
    assert error["type"] == "invalid_arguments"
    assert error["message"].startswith("content_bytes_base64 is not base64: ")
    assert await paths(kit) == [DEMO]


async def test_padding_in_the_middle_of_much_is_found(kit: Kit) -> None:
    whole = encoded(bytes(3 * 1024 * 1024))
    odd = whole[: 1024 * 1024 - 4] + "AA==" + whole[1024 * 1024 :]
    error = await refused(
        kit, "artifact.put", PM, task_id=BUILD, path="a", content_bytes_base64=odd
    )
    assert "padding" in error["message"]


async def test_a_media_type_is_one(kit: Kit) -> None:
    given = {"task_id": BUILD, "path": "a", "content_bytes_base64": ""}
    error = await refused(kit, "artifact.put", PM, **given, content_type="text\r\nX: y")
    assert error["message"] == "content_type must be a media type such as text/markdown"
    assert (await put(kit, "a", content_type="text/html; charset=utf-8"))["content_type"]


async def test_a_foreign_task_is_as_good_as_none(kit: Kit) -> None:
    for task in (SORT, ABSENT):
        given = {"task_id": task, "path": "a", "content_bytes_base64": "AA=="}
        assert await refused(kit, "artifact.put", PM_OF_ALICE, **given) == NO_TASK
        assert await refused(kit, "artifact.put", WORKER, **given) == NO_TASK
        assert await refused(kit, "artifact.list", PM_OF_ALICE, task_id=task) == NO_TASK
        assert await refused(kit, "artifact.list", WORKER, task_id=task) == NO_TASK
    await put(kit, "bobs", task_id=SORT)
    for who in (PM_OF_ALICE, WORKER):
        told = [
            await refused(kit, "artifact.get", who, task_id=task, path=path)
            for task, path in ((SORT, "bobs"), (ABSENT, "bobs"), (BUILD, "bobs"))
        ]
        assert told == [NO_ARTIFACT] * 3
    assert await content(kit, "bobs", PM_OF_BOB, SORT) == b"x"


async def test_a_foreign_task_is_told_before_its_content_is_looked_at(kit: Kit) -> None:
    given = {"task_id": SORT, "path": "a", "content_bytes_base64": "?"}
    assert await refused(kit, "artifact.put", PM_OF_ALICE, **given) == NO_TASK


async def test_an_analyst_reads_and_does_not_write(kit: Kit) -> None:
    assert await content(kit, DEMO, PA_OF_ALICE)
    outcome = await kit.call(
        "artifact.put", PA_OF_ALICE, task_id=BUILD, path="a", content_bytes_base64=""
    )
    assert outcome.error is not None
    assert outcome.error.status in (403, 404)


async def test_run_and_job_are_in_the_audit(kit: Kit) -> None:
    await put(kit, "a", run_id=ABSENT, job_id=BUILDING)
    row = (await kit.audit_rows())[-1]
    told = {name: row[name] for name in ("tool_name", "task_id", "run_id", "job_id", "status")}
    assert told == {
        "tool_name": "artifact.put",
        "task_id": BUILD,
        "run_id": ABSENT,
        "job_id": BUILDING,
        "status": "success",
    }
    bound = replace(WORKER, bound={**WORKER.bound, "job_id": BUILDING})
    await put(kit, "b", who=bound)
    assert (await kit.audit_rows())[-1]["job_id"] == BUILDING
    given = {"task_id": BUILD, "path": "c", "content_bytes_base64": ""}
    assert await refused(kit, "artifact.put", bound, **given, job_id=ABSENT) == NO_TASK


@pytest.mark.parametrize("who", [PM, PM_OF_ALICE, WORKER], ids=["system", "manager", "worker"])
async def test_the_job_that_makes_it_is_one_of_the_task(kit: Kit, who: Any, tmp_path: Path) -> None:
    before = stored_files(tmp_path)
    given = {"task_id": BUILD, "path": "a", "content_bytes_base64": "AA=="}
    took: list[list[str]] = []
    for job in (SORTING, ABSENT):
        with noted_statements() as noted:
            error = await refused(kit, "artifact.put", who, **given, job_id=job)
        assert error == {"type": "not_found", "message": "The task has no such job."}
        took.append([one for one in noted if "orchestrator_" in one])
    assert took[0][-2:] == took[1][-2:]
    assert await paths(kit) == [DEMO]
    assert stored_files(tmp_path) == before
    await put(kit, "a", who=who, job_id=BUILDING)


async def test_a_dry_run_stores_nothing_not_even_a_blob(kit: Kit, tmp_path: Path) -> None:
    before = stored_files(tmp_path)
    outcome = await kit.call(
        "artifact.put", PM, dry_run=True, task_id=BUILD, path="a", content_bytes_base64="AA=="
    )
    assert outcome.body["result"]["size_bytes"] == 1
    again = {"task_id": BUILD, "path": DEMO, "content_bytes_base64": "AA=="}
    assert (await kit.call("artifact.put", PM, dry_run=True, **again)).error is None
    assert stored_files(tmp_path) == before
    assert await paths(kit) == [DEMO]
    assert len(await content(kit, DEMO)) > 1


async def test_a_prefix_has_no_wildcards(kit: Kit) -> None:
    for path in ("a_1", "ab1", "a%1", "A_1", "a/1", "ä", "a"):
        await put(kit, path)
    assert await paths(kit, prefix="a_") == ["a_1"]
    assert await paths(kit, prefix="a%") == ["a%1"]
    assert await paths(kit, prefix="a/") == ["a/1"]
    assert await paths(kit, prefix="a") == sorted(["a", "a%1", "a/1", "a_1", "ab1"])
    assert await paths(kit, prefix="\U0010ffff") == []
    assert await paths(kit, prefix="") == await paths(kit)
    error = await refused(kit, "artifact.list", PM, task_id=BUILD, prefix="a\0")
    assert error["type"] == "invalid_arguments"


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("a", "b"),
        ("a\U0010ffff", "b"),
        ("\ud7ff", "\ue000"),
        ("\U0010ffff", None),
        ("", None),
    ],
    ids=["letter", "last", "surrogates", "nothing", "empty"],
)
def test_the_end_of_a_prefix_can_be_compared(prefix: str, end: str | None) -> None:
    assert end_of(prefix) == end
    if end is not None:
        assert f"{prefix}\U0010ffff".encode() < end.encode()


async def test_a_cursor_is_good_for_its_list_alone(kit: Kit) -> None:
    for name in "abcd":
        await put(kit, name)
        await put(kit, name, task_id=SORT)
    page = await result(kit, "artifact.list", PM, task_id=BUILD, limit=2)
    assert [one["path"] for one in page["items"]] == ["a", "b"]
    cursor = page["next_cursor"]
    for wrong in ({"task_id": SORT}, {"task_id": BUILD, "prefix": "a"}):
        error = await refused(kit, "artifact.list", PM, **wrong, cursor=cursor)
        assert error["type"] == "invalid_arguments"
        assert "cursor" in error["message"]
    error = await refused(kit, "artifact.list", PM, task_id=BUILD, cursor=cursor[:-2] + "AA")
    assert "cursor" in error["message"]
    await put(kit, "aa")
    rest = await result(kit, "artifact.list", PM, task_id=BUILD, limit=3, cursor=cursor)
    assert [one["path"] for one in rest["items"]] == ["c", "d", DEMO]


def row(path: str, number: int) -> dict[str, Any]:
    return {
        "task_id": SORT,
        "path": path,
        "storage_ref": f"artifacts/00/{number:032x}",
        "size_bytes": 1,
        "content_type": "text/plain",
        "checksum_sha256": "0" * 64,
        "created_at": "2026-01-05T09:00:00.000000Z",
        "updated_at": "2026-01-05T09:00:00.000000Z",
        "updated_by": "test",
    }


async def test_a_page_is_bounded_by_bytes(kit: Kit) -> None:
    long = [f"{number:03}{'x' * 1000}" for number in range(300)]
    rows = [row(path, number) for number, path in enumerate(long)]
    await kit.app.gate.database.write(lambda one: one.execute(insert(artifacts), rows))
    page = await result(kit, "artifact.list", PM, task_id=SORT, limit=200)
    assert 100 < len(page["items"]) < 200
    assert sum(len(one["path"]) for one in page["items"]) <= sql.PAGE_BYTES
    assert await paths(kit, SORT, limit=200) == long


async def test_among_many_a_page_takes_as_many_statements_as_among_few(kit: Kit) -> None:
    async def taken(**arguments: Any) -> int:
        with noted_statements() as noted:
            await result(kit, "artifact.list", PM, task_id=SORT, limit=10, **arguments)
        return sum("orchestrator_artifacts" in one for one in noted)

    few = await taken()
    rows = [row(f"f{number:06}", number) for number in range(20_000)]
    await kit.app.gate.database.write(lambda one: one.execute(insert(artifacts), rows))
    assert await taken() == await taken(prefix="f0199") == few
    assert (await paths(kit, SORT, prefix="f01999")) == [f"f{n:06}" for n in range(19990, 20000)]
