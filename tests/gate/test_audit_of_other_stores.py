"""The row of a write to a store that cannot join the transaction; on both databases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text
from tests.gate.tools import (
    ADMIN,
    a_tool,
    audit_away,
    end_the_time,
    is_stored,
    offer,
    over,
    raising,
    run_sql,
    storing,
)

from toolgate.gate.audit_records import STARTED
from toolgate.gate.errors import Conflict
from toolgate.gate.seals import Sealer
from toolgate.gate.tool import Effect
from toolgate.testing import Kit, opened_kit
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, database__url=database_url) as opened:
        yield opened


async def rows_now(kit: Kit) -> list[tuple[str, str | None]]:
    """Status and error type of what is stored, without storing what waits."""
    every = text("SELECT status, error_type FROM audit ORDER BY seq")
    return await kit.app.gate.database.read(lambda c: [tuple(row) for row in c.execute(every)])


@asynccontextmanager
async def documents_elsewhere(kit: Kit, run: Any, **settings: Any) -> AsyncIterator[Kit]:
    """A second gate on the same database, with documents elsewhere and one more tool."""
    url = kit.app.gate.database.url.render_as_string(hide_password=False)
    tool = a_tool("artifact.put", run, effect=Effect.WRITE)
    folder = kit.app.settings.data
    kit_of = opened_kit(folder, plugins=offer(tool), database__url=url, **settings)
    async with kit_of as opened:
        yield over(opened, MemoryDocuments())


async def test_the_row_of_a_write_outside_is_there_first_and_completed_after(kit: Kit) -> None:
    seen: list[Any] = []

    async def look() -> None:
        seen.extend(await rows_now(kit))

    async with documents_elsewhere(kit, storing(look)) as away:
        assert (await away.call("artifact.put")).error is None
        assert await is_stored(away)
        assert seen == [("error", STARTED)]
        assert await rows_now(kit) == [("success", None)]


async def test_a_write_outside_that_fails_completes_its_row(kit: Kit) -> None:
    async with documents_elsewhere(kit, raising(Conflict("No."))) as away:
        assert (await away.call("artifact.put")).status == 409
        assert await rows_now(kit) == [("error", "conflict")]
        assert len(await away.audit_rows()) == 1


async def test_a_crash_in_the_middle_of_a_write_outside_leaves_its_row_started(kit: Kit) -> None:
    began, crash = anyio.Event(), anyio.Event()

    async def crashing() -> None:
        began.set()
        await crash.wait()

    async with (
        documents_elsewhere(kit, storing(crashing)) as away,
        anyio.create_task_group() as calls,
    ):
        calls.start_soon(away.call, "artifact.put")
        await began.wait()
        # What a process that ended now would leave behind:
        assert await rows_now(kit) == [("error", STARTED)]
        assert await Sealer(kit.app.gate.database).seal() == 0
        crash.set()
    assert await rows_now(kit) == [("success", None)]


async def test_a_cancelled_write_outside_leaves_one_row(kit: Kit) -> None:
    began = anyio.Event()

    async def waits() -> None:
        began.set()
        await anyio.Event().wait()

    async with documents_elsewhere(kit, storing(waits)) as away:
        async with anyio.create_task_group() as calls:
            calls.start_soon(away.call, "artifact.put")
            await began.wait()
            calls.cancel_scope.cancel()
        await away.audit_rows()
        assert await rows_now(kit) == [("error", "cancelled")]


async def test_a_write_outside_that_takes_too_long_leaves_one_row(kit: Kit) -> None:
    opened: list[Kit] = []

    async def waits() -> None:
        end_the_time(opened[0])
        await anyio.Event().wait()

    async with documents_elsewhere(kit, storing(waits)) as away:
        opened.append(away)
        assert (await away.call("artifact.put")).status == 504
        await away.audit_rows()
        assert await rows_now(kit) == [("error", "timeout")]


async def test_a_write_outside_that_was_stopped_may_have_been_done_and_its_row_is_named(
    kit: Kit,
) -> None:
    async with documents_elsewhere(kit, storing(anyio.Event().wait), limits__seconds=0.1) as away:
        stopped = await away.call("artifact.put")
        [row] = await away.audit_rows()
        assert stopped.error is not None
        assert not stopped.error.retryable
        assert "may have been done" in stopped.error.message
        assert stopped.error.message.endswith(f"Audit id: {row['id']}")


async def test_a_write_outside_is_not_begun_when_its_row_cannot_be_stored(kit: Kit) -> None:
    async with documents_elsewhere(kit, storing()) as away:
        async with audit_away(kit):
            assert (await away.call("artifact.put")).status >= 500
            assert not await is_stored(away)
        assert [row["status"] for row in await away.audit_rows()] == ["error"]


async def test_a_write_outside_whose_row_cannot_be_completed_is_still_told_as_done(
    kit: Kit,
) -> None:
    async def lose_the_audit() -> None:
        await run_sql(kit.app.gate.database, "ALTER TABLE audit RENAME TO audit_away")

    async with documents_elsewhere(kit, storing(lose_the_audit)) as away:
        done = await away.call("artifact.put")
        await run_sql(kit.app.gate.database, "ALTER TABLE audit_away RENAME TO audit")
        assert done.error is None
        await away.audit_rows()
        assert await rows_now(kit) == [("error", STARTED)]


async def test_a_dry_run_outside_is_refused(kit: Kit) -> None:
    async with documents_elsewhere(kit, storing()) as away:
        refused = await away.call("artifact.put", ADMIN, dry_run=True)
        assert refused.status == 403
        assert not await is_stored(away)
        assert [row["error_type"] for row in await away.audit_rows()] == ["access_denied"]
