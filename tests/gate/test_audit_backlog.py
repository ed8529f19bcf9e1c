"""Rows that pile up while the database does not store them are stored once it does again."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from tests.gate.tools import ADMIN, a_tool, offer

from toolgate.gate import audit, audit_records
from toolgate.gate.audit import MAX_WAITING
from toolgate.gate.principal import Kind, Principal
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

TOGETHER = 500
"""Rows for which a slow database has time in one transaction."""


@pytest.fixture
async def kit(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Kit]:
    monkeypatch.setattr(audit, "BATCH_SECONDS", 3600)  # rows are stored when a test says so
    plugins = offer(a_tool("list_things"))
    async with opened_kit(tmp_path, plugins=plugins, database__url=database_url) as opened:
        yield opened


class SlowDatabase:
    """In the way of every write: too slow for many audit rows at once, or for any at all."""

    def __init__(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time_for = 0
        self._write = kit.app.gate.database.write
        monkeypatch.setattr(kit.app.gate.database, "write", self.write)

    async def write(self, work: Any) -> Any:
        return await self._write(lambda connection: self._counted(connection, work))

    def _counted(self, connection: Any, work: Any) -> Any:
        stored, copy = 0, audit_records._copy

        def count(rows: int) -> None:
            nonlocal stored
            stored += rows
            if stored > self.time_for:
                raise OperationalError("…", None, Exception("too slow"))

        def insert(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("INSERT INTO audit ("):
                count(statement.partition("VALUES")[2].count("), (") + 1)

        def counted_copy(connection: Any, rows: Any) -> None:
            count(len(rows))
            copy(connection, rows)

        event.listen(connection, "before_cursor_execute", insert)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(audit_records, "_copy", counted_copy)
                return work(connection)
        finally:
            event.remove(connection, "before_cursor_execute", insert)


@pytest.fixture
async def slow(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> SlowDatabase:
    """A database that could not store one row already."""
    made = SlowDatabase(kit, monkeypatch)
    await kit.call("list_things")
    with pytest.raises(OperationalError):
        await kit.app.gate.audit.flush()
    return made


async def test_a_backlog_is_stored_in_transactions_that_end_in_time(
    kit: Kit, slow: SlowDatabase
) -> None:
    many = 3 * TOGETHER
    everybody = [Principal(kind=Kind.USER, id=f"u{number}") for number in range(many)]
    refused = [await kit.call("list_things", one) for one in everybody]
    assert {one.status for one in refused} == {503}
    slow.time_for = TOGETHER
    await kit.app.gate.audit.flush()
    assert (await kit.call("list_things")).error is None
    assert len(await kit.audit_rows()) == 1 + many + 1


async def test_calls_are_answered_once_a_part_of_the_backlog_is_stored(
    kit: Kit, slow: SlowDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.gate.audit.MAX_TOGETHER", 1)
    for number in range(3):
        await kit.call("list_things", Principal(kind=Kind.USER, id=f"u{number}"))
    store = kit.app.gate.database.write
    stored: list[int] = []

    async def thrice(work: Any) -> Any:
        stored.append(1)
        await store(work)
        await kit.app.gate.audit.check() if len(stored) > 1 else None

    slow.time_for = 1
    monkeypatch.setattr(kit.app.gate.database, "write", thrice)
    await kit.app.gate.audit.flush()
    assert len(stored) == 4


async def test_who_tries_again_during_an_outage_has_two_rows(kit: Kit, slow: SlowDatabase) -> None:
    """One for the first refusal, and one that counts the others."""
    refused = [await kit.call("list_things", ADMIN) for _ in range(MAX_WAITING)]
    assert {one.status for one in refused} == {503}
    slow.time_for = TOGETHER
    await kit.app.gate.audit.flush(last=True)
    rows = [(row["error_type"], row["times"]) for row in await kit.audit_rows()]
    assert sorted(rows, key=str) == [
        ("unavailable", 1),
        ("unavailable", MAX_WAITING - 1),
        (None, 1),
    ]
