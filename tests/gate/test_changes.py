"""Calls and the change log: whose changes they are, what a dry run tells, how long they stay."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.gate.tools import ADMIN, USER, a_tool, offer, says_nothing, storing
from tests.patience import PATIENT
from tests.statements import noted_statements

from toolgate.db.changes import DOCUMENTS, Change, store_changes
from toolgate.gate.changes import MAX_DELETED, Position, Retention, changes_after
from toolgate.gate.diffs import Diff, diff_of
from toolgate.gate.errors import Conflict
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect
from toolgate.ports.documents import Create, Set, StoreUnavailable, Update
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

NEW: dict[str, Any] = {"collection": "apps", "document_id": "n", "data": {"name": "N"}}
TOLD = {"store": "documents", "path": "apps/n", "before": None, "after": {"name": "N"}}
STATEMENTS = {"sqlite": 4, "postgresql": 1}
"""Of one `create_document` with one field: the document, its entry in the index, its change and its
audit row; in PostgreSQL together."""


async def several(ctx: Any, args: Any) -> Any:
    await ctx.world.documents.write(ctx.tx, Create("apps", "a", {"n": 1}))

    async def more(documents: Any) -> None:
        found = await documents.get("apps", "a")
        documents.write(Update("apps", "a", {"n": found["n"] + 1}), Set("apps", "b", {}))

    await ctx.world.documents.transact(ctx.tx, more)
    return await says_nothing(ctx, args)


async def gives_up() -> None:
    raise Conflict("No.")


PLUGINS = offer(
    a_tool("db.several", several, effect=Effect.WRITE),
    a_tool("db.half", storing(gives_up), effect=Effect.WRITE),
    a_tool("db.public", storing(), effect=Effect.WRITE, role=Role.PUBLIC, pack="appdata"),
)


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    kit_of = opened_kit(tmp_path, writes=True, plugins=PLUGINS, database__url=database_url)
    async with kit_of as opened:
        yield opened


async def logged(kit: Kit) -> list[Any]:
    rows, _ = await changes_after(kit.app.gate.database, Position(), 100)
    return list(rows)


async def test_a_change_names_the_audit_row_of_its_call(kit: Kit) -> None:
    assert (await kit.call("create_document", **NEW)).error is None
    [change] = await logged(kit)
    [row] = await kit.audit_rows()
    assert change.call == row["id"]
    assert (change.path, change.before, change.after) == ("apps/n", None, {"name": "N"})


async def test_a_write_that_fails_leaves_no_change(kit: Kit) -> None:
    assert (await kit.call("create_document", **NEW)).error is None
    assert (await kit.call("create_document", **NEW)).status == 409
    assert (await kit.call("db.half")).status == 409
    assert [one.path for one in await logged(kit)] == ["apps/n"]


async def test_a_write_is_not_stored_when_its_change_cannot_be(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr("toolgate.db.transactions.store_changes", fail)
    monkeypatch.setattr("toolgate.adapters.sql.documents.rows.rows_of_changes", fail)
    assert (await kit.call("create_document", **NEW)).status == 503
    found = await kit.call("get_document", collection="apps", document_id="n")
    assert found.status == 404


async def test_not_even_where_a_handler_goes_on(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr("toolgate.db.transactions.store_changes", fail)
    database = kit.app.gate.database
    store = kit.app.documents.of("appdata")
    tx = database.transaction()
    with pytest.raises(StoreUnavailable):
        await store.write(tx, Create("apps", "n", {}))
    with pytest.raises(StoreUnavailable):
        await tx.__aexit__(None, None, None)
    assert await store.get("apps", "n") is None


async def test_a_dry_run_tells_what_would_change_and_logs_nothing(kit: Kit) -> None:
    tried = await kit.call("create_document", dry_run=True, **NEW)
    assert tried.diff == Diff([TOLD])
    assert await logged(kit) == []
    done = await kit.call("create_document", **NEW)
    assert (done.diff, done.body) == (None, tried.body)


async def test_a_dry_run_tells_every_change_in_order(kit: Kit) -> None:
    tried = await kit.call("db.several", dry_run=True)
    assert tried.diff is not None
    told = [(one["path"], one["before"], one["after"]) for one in tried.diff.changes]
    assert told == [
        ("apps/a", None, {"n": 1}),
        ("apps/a", {"n": 1}, {"n": 2}),
        ("apps/b", None, {}),
    ]


async def test_who_is_no_admin_is_told_only_how_many_changes_there_would_be(kit: Kit) -> None:
    tried = await kit.call("db.public", USER, dry_run=True)
    assert (tried.error, tried.diff) == (None, Diff([], 1))


def test_what_never_leaves_a_store_is_in_no_diff() -> None:
    user = {"api": {"clientId": "c", "privateKey": "secret"}, "roles": {}}
    change = Change(DOCUMENTS, "backend", "users/u1", None, user, "")
    [told] = diff_of([change, change._replace(before=user)], ADMIN).changes[1:]
    shown = {"api": {"clientId": "c"}, "roles": {}}
    assert (told["before"], told["after"]) == (shown, shown)
    assert user["api"] == {"clientId": "c", "privateKey": "secret"}


def test_a_diff_that_is_too_long_says_how_many_changes_it_left_out() -> None:
    small, large = ({"path": "x" * size} for size in (10, 1000))
    told = json.loads(Diff([small, small, large, small], omitted=3).json(200))
    assert told == {"changes": [small, small], "omitted": 5}


async def test_a_document_is_stored_with_its_change_in_few_statements(kit: Kit) -> None:
    await kit.call("create_document", **NEW)
    with noted_statements() as statements:
        await kit.send("create_document", NEW | {"document_id": "second"})
    assert len(statements) == STATEMENTS[kit.app.gate.database.dialect], statements


# How long they are kept -----------------------------------------------------------------------

NOON = datetime(2026, 3, 16, 12, tzinfo=UTC)


async def store_at(kit: Kit, *times: datetime) -> None:
    stamps = [f"{one:%Y-%m-%dT%H:%M:%S.%f}Z" for one in times]
    made = [Change(DOCUMENTS, "n", f"c/{number}", None, {}, at) for number, at in enumerate(stamps)]
    await kit.app.gate.database.write(lambda connection: store_changes(connection, None, made))


async def test_changes_are_deleted_once_they_are_older_than_the_setting_says(kit: Kit) -> None:
    today = NOON
    retention = Retention(kit.app.gate.database, 30, lambda: today)
    month = timedelta(days=30)
    await store_at(kit, NOON - month - timedelta(seconds=1), NOON - month, NOON)
    assert await retention.delete_old() == 1
    assert [one.path for one in await logged(kit)] == ["c/1", "c/2"]
    today += timedelta(days=29)
    assert await retention.delete_old() == 1
    today += timedelta(days=2)
    assert await retention.delete_old() == 1
    assert await logged(kit) == []
    assert await retention.delete_old() == 0


async def test_a_gate_deletes_old_changes_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = anyio.Event()
    delete_old = Retention.delete_old

    async def delete_and_tell(retention: Retention) -> int:
        if count := await delete_old(retention):
            deleted.set()
        return count

    monkeypatch.setattr(Retention, "delete_old", delete_and_tell)
    monkeypatch.setattr("toolgate.gate.changes.CLEAN_SECONDS", 0.01)
    async with opened_kit(tmp_path, writes=True, changes__days=0) as kit:
        await store_at(kit, NOON - timedelta(days=1))
        with anyio.fail_after(PATIENT):
            await deleted.wait()
        assert await logged(kit) == []


async def test_many_are_deleted_a_few_at_a_time(kit: Kit) -> None:
    await store_at(kit, *[NOON] * (2 * MAX_DELETED + 1))
    retention = Retention(kit.app.gate.database, 0, lambda: NOON + timedelta(seconds=1))
    with noted_statements() as statements:
        assert await retention.delete_old() == 2 * MAX_DELETED + 1
    assert sum(one.startswith("DELETE") for one in statements) == 3
