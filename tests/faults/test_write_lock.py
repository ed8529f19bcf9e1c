"""Another process holds SQLite's write lock for seconds."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import give_time
from tests.patience import PATIENT

from toolgate.gate import audit
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

NEW: dict[str, Any] = {"collection": "apps", "document_id": "x", "data": {"a": 1}}
IN_TIME = 2 / 3 * PATIENT
"""Less than a writer would wait by itself."""
SOON = 1.0


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "toolgate.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def until_calls_are_held(kit: Kit) -> int:
    """Ask until a batch is late; how many were answered before."""
    answered = 0
    async with asyncio.timeout(IN_TIME):
        while not kit.app.gate.audit.blocked:
            answered += (await kit.call("list_collections")).error is None
            await asyncio.sleep(0.01)
    return answered


async def test_while_rows_cannot_be_stored_calls_wait_and_are_answered_after(
    tmp_path: Path,
) -> None:
    async with opened_kit(tmp_path) as kit:
        with write_lock(tmp_path):
            answered = await until_calls_are_held(kit)
            held = asyncio.create_task(kit.call("list_collections"))
            _, waiting = await asyncio.wait([held], timeout=2 * audit.BATCH_SECONDS)
            assert waiting == {held}
        assert (await held).error is None
        assert len(await kit.audit_rows()) == answered + 1


async def test_calls_that_waited_too_long_are_refused_and_no_answered_one_lacks_its_row(
    tmp_path: Path,
) -> None:
    async with opened_kit(tmp_path) as kit:
        database = kit.app.gate.database
        patience, database.patience = database.patience, SOON
        with write_lock(tmp_path):
            answered = await until_calls_are_held(kit)
            async with asyncio.timeout(IN_TIME):
                refused = await kit.call("list_collections")
            assert refused.status == 503
        database.patience = patience
        async with asyncio.timeout(PATIENT):
            while (await kit.call("list_collections")).error:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        rows = await kit.audit_rows()
        assert [row["error_type"] for row in rows].count(None) == answered + 1


async def test_a_read_that_was_running_is_not_answered_without_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        assert (await kit.call("create_document", **NEW)).error is None
        # For the row; the read itself has all the time this test may need.
        kit.app.gate.database.patience = SOON
        give_time(kit, 10 * PATIENT)
        documents = kit.app.documents.of("appdata")
        get, go_on, begun = documents.get, asyncio.Event(), asyncio.Event()

        async def slow(*given: Any) -> Any:
            begun.set()
            await go_on.wait()
            return await get(*given)

        monkeypatch.setattr(documents, "get", slow)
        read = {"collection": "apps", "document_id": "x"}
        with write_lock(tmp_path):
            running = asyncio.create_task(kit.call("get_document", **read))
            await begun.wait()
            await until_calls_are_held(kit)
            go_on.set()
            async with asyncio.timeout(IN_TIME):
                assert (await running).error_type == "unavailable"


async def test_a_write_that_waits_for_the_lock_is_answered_at_its_deadline(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        give_time(kit, SOON)
        with write_lock(tmp_path):
            async with asyncio.timeout(IN_TIME):
                late = await kit.call("create_document", **NEW)
            assert late.status in (503, 504)
        give_time(kit, PATIENT)
        async with asyncio.timeout(PATIENT):
            while (await kit.call("create_document", **NEW)).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
