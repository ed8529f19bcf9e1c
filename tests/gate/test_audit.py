"""One row a call, whatever becomes of it; on both databases."""

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError, OperationalError
from tests.gate.tools import (
    ADMIN,
    USER,
    Said,
    a_tool,
    audit_away,
    is_stored,
    offer,
    only_row,
    storing,
)
from tests.needed_packs import needs_pack
from tests.patience import PATIENT

from toolgate.gate.calls import Call
from toolgate.gate.errors import Conflict, Unauthenticated
from toolgate.gate.principal import AgentType, Kind, Principal
from toolgate.gate.seals import Sealer
from toolgate.gate.tool import Effect, Input
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

MARKER = "marker-7c1f"
UNWRITTEN = "The audit log cannot be written, so nothing is answered now."
WORKER = Principal(
    kind=Kind.AGENT,
    id="agent-7",
    agent_type=AgentType.WORKER,
    user_id="u7",
    bound={"project_id": "p1", "task_id": "t1", "job_id": "j1"},
)


class Text(Input):
    text: str


async def echoes(ctx: Any, args: Text) -> Said:
    return Said(echo=args.text)


async def fails_aloud(ctx: Any, args: Text) -> Said:
    raise Conflict(f"There is {args.text} already.")


async def breaks_aloud(ctx: Any, args: Text) -> Said:
    raise RuntimeError(args.text)


async def give_up() -> None:
    raise Conflict("No.")


PLUGINS = offer(
    a_tool("help.get"),
    a_tool("db.echo", echoes, takes=Text),
    a_tool("db.fail", fails_aloud, takes=Text),
    a_tool("db.break", breaks_aloud, takes=Text),
    a_tool("db.write", storing(), effect=Effect.WRITE),
    a_tool("db.half", storing(give_up), effect=Effect.WRITE),
)


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    kit_of = opened_kit(tmp_path, writes=True, plugins=PLUGINS, database__url=database_url)
    async with kit_of as opened:
        yield opened


# The row --------------------------------------------------------------------------------------


@needs_pack("orchestrator")
async def test_a_row_says_who_called_what_when_and_how_it_was_decided(kit: Kit) -> None:
    await kit.call("help.get", WORKER)
    row = await only_row(kit)
    made = datetime.fromisoformat(row.pop("created_at"))
    assert abs(datetime.now(UTC) - made) < timedelta(seconds=30)
    assert len(row.pop("id")) == 32
    assert row.pop("duration_ms") >= 0
    assert row.pop("seq") == 1
    row.pop("seal")
    assert row == {
        "request_id": "test",
        "transport": "test",
        "subject_type": "agent",
        "subject_id": "agent-7",
        "user_id": "u7",
        "agent_type": "worker",
        "role_names": "",
        "group_ids": "",
        "project_id": "p1",
        "task_id": "t1",
        "run_id": None,
        "job_id": "j1",
        "client_id": None,
        "grant_id": None,
        "times": 1,
        "tool_name": "help.get",
        "decision": "allow",
        "rule": "worker-does-its-task",
        "status": "success",
        "error_type": None,
    }


async def test_every_call_leaves_one_row_also_when_it_is_refused(kit: Kit) -> None:
    await kit.call("list_collections")
    await kit.call("no.such.tool")
    await kit.call("get_document", USER)
    await kit.call("db_echo")
    await kit.call("get_document", collection="apps", document_id="nowhere")
    await kit.call("db.break", text="x")
    await kit.call("db.half")
    await kit.call("db.write")
    rows = await kit.audit_rows()
    shown = {(row["tool_name"], row["decision"], row["status"], row["error_type"]) for row in rows}
    assert len(rows) == 8
    assert shown == {
        ("list_collections", "allow", "success", None),
        ("no.such.tool", "deny", "error", "not_found"),
        ("get_document", "deny", "error", "not_found"),
        ("db.echo", "deny", "error", "invalid_arguments"),
        ("get_document", "allow", "error", "not_found"),
        ("db.break", "allow", "error", "internal_error"),
        ("db.write", "allow", "success", None),
        ("db.half", "allow", "error", "conflict"),
    }
    assert all(row["rule"] for row in rows)
    assert len({row["id"] for row in rows}) == 8


async def test_a_request_that_never_became_a_call_leaves_a_row_too(kit: Kit) -> None:
    call = Call(tool="/path", arguments=None, principal=USER, request_id="r1", transport="http")
    kit.app.gate.refuse(call, Unauthenticated("Who?"), "credentials-required")
    row = await only_row(kit)
    assert (row["tool_name"], row["decision"], row["error_type"], row["rule"]) == (
        "/path",
        "deny",
        "unauthenticated",
        "credentials-required",
    )


@pytest.mark.parametrize("name", ["\0", "a\0b\x1b[31m", "x" * 5000, "\n\r", "\u202eevil", "é日本"])
async def test_no_name_that_a_stranger_calls_can_stop_the_audit(kit: Kit, name: str) -> None:
    assert (await kit.call(name, USER)).status == 404
    row = await only_row(kit)
    assert row["tool_name"].isprintable()
    assert len(row["tool_name"]) <= 128
    assert (await kit.call("list_collections")).error is None


# What it never says ---------------------------------------------------------------------------


async def test_arguments_and_results_are_nowhere_but_in_documents(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await kit.call("db.echo", text=MARKER)
    await kit.call("db.fail", text=MARKER)
    await kit.call("db.break", text=MARKER)
    await kit.call("db.echo", wrong=MARKER)
    await kit.call("db.echo", dry_run=True, text=MARKER)
    await kit.call("no.such", USER, text=MARKER)
    await kit.call("create_document", collection="apps", data={"a": MARKER}, document_id=MARKER)
    await kit.call("create_document", collection="apps", data={"a": MARKER}, document_id=MARKER)
    await kit.call("get_document", collection="apps", document_id=MARKER)
    assert len(await kit.audit_rows()) == 9
    await Sealer(kit.app.gate.database).seal()
    found = await kit.app.gate.database.read(tables_with_the_marker)
    assert found == {"documents", "document_index", "changes"}


def tables_with_the_marker(connection: Any) -> set[str]:
    return {
        table
        for table in inspect(connection).get_table_names()
        for row in connection.execute(text(f'SELECT * FROM "{table}"'))
        if any(MARKER in str(value) or MARKER.encode() in bytes_of(value) for value in row)
    }


def bytes_of(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else b""


async def test_nothing_that_was_not_stored_is_in_the_database_file(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, plugins=PLUGINS) as kit:
        for tool in ("db.echo", "db.fail", "create_document", "get_document", "query_collection"):
            await kit.call(tool, text=MARKER, collection=MARKER, data={"x": MARKER})
        await kit.audit_rows()
        content = content_of(tmp_path)
        assert b"create_document" in content
        assert MARKER.encode() not in content


def content_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


# Together with the write ----------------------------------------------------------------------


async def test_a_write_is_not_stored_when_its_row_cannot_be(kit: Kit) -> None:
    async with audit_away(kit):
        failed = await kit.call("db.write")
        assert failed.status >= 500
        assert not await is_stored(kit)
    row = await only_row(kit)
    assert (row["tool_name"], row["status"]) == ("db.write", "error")
    assert not await is_stored(kit)


async def test_a_write_that_fails_half_way_stores_nothing_but_its_row(kit: Kit) -> None:
    assert (await kit.call("db.half")).status == 409
    assert not await is_stored(kit)
    row = await only_row(kit)
    assert (row["status"], row["error_type"]) == ("error", "conflict")


async def test_a_write_and_its_row_are_there_at_once(kit: Kit) -> None:
    assert (await kit.call("db.write")).error is None
    count = text("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM audit)")
    # No flush: the row is not one of those that wait.
    counted = await kit.app.gate.database.read(lambda c: tuple(c.execute(count).one()))
    assert counted == (1, 1)


async def test_a_dry_run_answers_alike_stores_nothing_and_leaves_a_row(kit: Kit) -> None:
    new: dict[str, Any] = {"collection": "apps", "data": {"name": "x"}, "document_id": "stored"}
    tried = await kit.call("create_document", dry_run=True, **new)
    assert tried.body == {"id": "stored", "success": True}
    assert not await is_stored(kit)
    row = await only_row(kit)
    assert (row["tool_name"], row["error_type"]) == ("create_document", "dry_run")
    assert (await kit.call("create_document", **new)).body == tried.body
    assert await is_stored(kit)


# Batches --------------------------------------------------------------------------------------


async def test_what_waits_is_stored_on_close(tmp_path: Path, database_url: str) -> None:
    async with opened_kit(tmp_path, database__url=database_url) as kit:
        for _ in range(7):
            await kit.call("list_collections")
    async with opened_kit(tmp_path, database__url=database_url) as again:
        rows = await again.audit_rows()
        assert [row["tool_name"] for row in rows] == ["list_collections"] * 7
        assert all(row["seal"] for row in rows)


async def test_a_batch_is_stored_without_being_asked(kit: Kit) -> None:
    await kit.call("list_collections")
    count = text("SELECT count(*) FROM audit")
    with anyio.fail_after(PATIENT):
        while await kit.app.gate.database.read(lambda c: c.scalar(count)) == 0:
            await anyio.lowlevel.checkpoint()
    assert len(await kit.audit_rows()) == 1


async def test_a_batch_whose_commit_was_not_heard_of_is_not_stored_twice(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = kit.app.gate.database
    write = database.write

    async def deaf(work: Any) -> Any:
        await write(work)
        raise OperationalError("COMMIT", None, Exception("connection lost"))

    await kit.call("list_collections")
    with monkeypatch.context() as patched:
        patched.setattr(database, "write", deaf)
        with pytest.raises(OperationalError):
            await kit.app.gate.audit.flush()
        assert (await kit.call("list_collections")).body == {"error": UNWRITTEN}
    rows = await kit.audit_rows()
    assert [row["error_type"] for row in rows] == [None, "unavailable"]
    assert (await kit.call("list_collections")).error is None


# Fails closed ---------------------------------------------------------------------------------


async def test_nothing_is_answered_while_rows_cannot_be_stored_and_all_after(kit: Kit) -> None:
    assert (await kit.call("list_collections")).error is None
    async with audit_away(kit):
        with pytest.raises(DBAPIError):
            await kit.app.gate.audit.flush()
        for tool in ("list_collections", "create_document", "get_document"):
            refused = await kit.call(tool)
            assert (refused.status, refused.body["error"]) == (503, UNWRITTEN)
        hidden = await kit.call("get_document", USER)
        unknown = await kit.call("no.such", USER)
        assert hidden.raw == unknown.raw
    await kit.app.gate.audit.flush(last=True)
    assert (await kit.call("list_collections")).error is None
    rows = await kit.audit_rows()
    assert [row["error_type"] for row in rows] == [None, *["unavailable"] * 4, None]
    assert [row["times"] for row in rows if row["error_type"]] == [2, 1, 1, 1]


async def test_refusals_do_not_pile_up_without_end(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolgate.gate.audit.MAX_WAITING", 10)
    async with audit_away(kit):
        callers = [Principal(kind=Kind.USER, id=f"u{number}") for number in range(30)]
        outcomes = [await kit.call("list_collections", one) for one in callers]
        assert [one.status for one in outcomes[10:]] == [503] * 20
    rows = await kit.audit_rows()
    assert len(rows) == 10
    assert "20 calls have no audit row: too many came at once" in caplog.messages


async def test_calls_that_come_faster_than_their_rows_are_stored_wait(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that never gives way to the task that stores rows is not refused."""
    monkeypatch.setattr("toolgate.gate.audit.MAX_WAITING", 10)
    call = Call(
        tool="list_collections", arguments={}, principal=ADMIN, request_id="r", transport="test"
    )
    outcomes = [await kit.app.gate.execute(call) for _ in range(35)]
    assert [one.status for one in outcomes] == [200] * 35
    assert len(await kit.audit_rows()) == 35
