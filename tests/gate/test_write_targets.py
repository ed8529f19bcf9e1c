"""What a tool may touch together, and what is told of each write; on both databases."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError
from tests.gate.tools import ADMIN, STORED, Run, Said, a_tool, end_the_time, offer, over, run_sql
from tests.patience import PATIENT

from toolgate.db.threads import Threads
from toolgate.db.transactions import Transaction
from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict
from toolgate.gate.tool import Effect, Target
from toolgate.ports.tree import SetValue
from toolgate.testing import Kit, opened_kit
from toolgate.testing.blobs import MemoryBlobs
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio

FORBIDDEN = 403
TARGETS = [
    some
    for size in range(1, len(Target) + 1)
    for some in combinations(Target, size)
    if Target.BLOBS not in some or Target.TABLES in some
]
every_target = pytest.mark.parametrize("targets", TARGETS, ids="+".join)


class Writer:
    """A handler that writes to each of its targets, outside first."""

    def __init__(self, targets: Collection[Target], then: Run | None = None) -> None:
        self.targets = targets
        self.then = then
        self.sent = 0
        self.blobs = MemoryBlobs()
        self.tx: Transaction | None = None

    async def __call__(self, ctx: Context[Any], args: Any) -> Said:
        if Target.OUTSIDE in self.targets:
            self.sent += 1
        if Target.DOCUMENTS in self.targets:
            await ctx.world.documents.write(ctx.tx, STORED)
        if Target.TREE in self.targets:
            await ctx.world.tree().write(ctx.tx, SetValue("a", "stored"))
        if Target.BLOBS in self.targets and not ctx.dry_run:
            await self.blobs.put("a", b"stored")
        if Target.TABLES in self.targets:
            self.tx = ctx.tx
            await ctx.tx.run(insert)
        if self.then is not None:
            await self.then(ctx, args)
        return Said(done=True)


def insert(connection: Connection) -> None:
    connection.execute(text("INSERT INTO noted (word) VALUES ('a')"))


@pytest.fixture
def writer() -> Writer:
    return Writer(())


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, writer: Writer) -> AsyncIterator[Kit]:
    """A gate with one tool for each combination of targets."""
    tools = [
        replace(
            a_tool(called(targets), writer.__call__, effect=Effect.WRITE),
            writes=frozenset(targets),
        )
        for targets in TARGETS
    ]
    given = opened_kit(tmp_path, writes=True, plugins=offer(*tools), database__url=database_url)
    async with given as opened:
        await run_sql(opened.app.gate.database, "CREATE TABLE noted (word TEXT)")
        yield opened


async def traces(kit: Kit, writer: Writer) -> set[Target]:
    """Which targets were written to."""
    rows = await kit.app.gate.database.read(
        lambda connection: connection.execute(text("SELECT word FROM noted")).all()
    )
    store = kit.app.worlds["orchestrator"].world.documents
    document = await store.get("apps", "stored")
    found = {
        Target.TABLES: rows,
        Target.DOCUMENTS: document,
        Target.TREE: await kit.app.trees.of("orchestrator").get("a"),
        Target.BLOBS: rows and writer.blobs.stored,
        Target.OUTSIDE: writer.sent,
    }
    return {target for target, one in found.items() if one}


def called(targets: Collection[Target]) -> str:
    return "db." + "_".join(targets)


async def ends(kit: Kit) -> list[str | None]:
    return [row["error_type"] for row in await kit.audit_rows()]


async def check_what_is_written(kit: Kit, writer: Writer, *, dry_run_is: int) -> None:
    """Only what is in the database can be tried first; then all is written."""
    name = called(writer.targets)
    assert (await kit.call(name, ADMIN, dry_run=True)).status == dry_run_is
    assert await traces(kit, writer) == set()
    assert writer.blobs.stored == {}
    outcome = await kit.call(name)
    assert outcome.error is None, outcome.body
    assert await traces(kit, writer) == set(writer.targets)
    tried = "access_denied" if dry_run_is == FORBIDDEN else "dry_run"
    assert sorted(await ends(kit), key=str) == [None, tried]


@every_target
async def test_a_tool_writes_to_all_that_it_declares(
    kit: Kit, writer: Writer, targets: tuple[Target, ...]
) -> None:
    writer.targets = targets
    dry_run_is = FORBIDDEN if Target.OUTSIDE in targets else 200
    await check_what_is_written(kit, writer, dry_run_is=dry_run_is)


@pytest.mark.parametrize(
    "targets", [some for some in TARGETS if Target.DOCUMENTS in some], ids="+".join
)
async def test_a_tool_writes_to_all_that_it_declares_with_documents_elsewhere(
    kit: Kit, writer: Writer, targets: tuple[Target, ...]
) -> None:
    writer.targets = targets
    await check_what_is_written(over(kit, MemoryDocuments()), writer, dry_run_is=FORBIDDEN)


@every_target
async def test_what_is_in_the_database_is_rolled_back_when_the_handler_fails(
    kit: Kit, writer: Writer, targets: tuple[Target, ...]
) -> None:
    async def fail(ctx: Context[Any], args: Any) -> Said:
        raise Conflict("No.")

    writer.targets, writer.then = targets, fail
    assert (await kit.call(called(targets))).status == 409
    assert await traces(kit, writer) == set(targets) & {Target.OUTSIDE}
    assert await ends(kit) == ["conflict"]


with_and_without_its_row = pytest.mark.parametrize(
    "targets",
    [(Target.TABLES,), (Target.TABLES, Target.OUTSIDE), (Target.DOCUMENTS, Target.TABLES)],
    ids="+".join,
)
"""With documents elsewhere: the first commits with its audit row, the others without."""


@with_and_without_its_row
async def test_a_commit_that_is_not_confirmed_is_not_told_as_an_outage(
    kit: Kit, writer: Writer, targets: tuple[Target, ...]
) -> None:
    async def lose_the_line(ctx: Context[Any], args: Any) -> Said:
        def lose(connection: Connection) -> None:
            def rolled_back_unheard() -> None:
                connection.rollback()
                raise OperationalError("COMMIT", None, ConnectionError("the line is cut"))

            connection.commit = rolled_back_unheard

        await ctx.tx.run(lose)
        return Said()

    writer.targets, writer.then = targets, lose_the_line
    kit = over(kit, MemoryDocuments())
    outcome = await kit.call(called(targets))
    assert outcome.error is not None
    assert (outcome.error_type, outcome.error.retryable) == ("outcome_unknown", False)
    [row] = await kit.audit_rows()
    assert row["error_type"] == "outcome_unknown"
    assert outcome.error.message.endswith(f"Audit id: {row['id']}")


@with_and_without_its_row
async def test_a_write_that_is_committed_past_its_deadline_is_told_as_done(
    kit: Kit,
    writer: Writer,
    targets: tuple[Target, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, stopped = asyncio.get_running_loop(), threading.Event()
    stop, end = Threads._stop, Transaction._end

    async def note_the_stop(threads: Threads, *work: Any) -> None:
        stopped.set()
        await stop(threads, *work)

    def end_late(tx: Transaction, kept: bool) -> None:
        if tx is writer.tx:
            loop.call_soon_threadsafe(end_the_time, kit)
            assert stopped.wait(PATIENT)
        end(tx, kept)

    monkeypatch.setattr(Threads, "_stop", note_the_stop)
    monkeypatch.setattr(Transaction, "_end", end_late)
    writer.targets = targets
    kit = over(kit, MemoryDocuments())
    outcome = await kit.call(called(targets))
    assert stopped.is_set()
    assert outcome.error is None, outcome.body
    assert await traces(kit, writer) == set(targets)
    assert await ends(kit) == [None]
