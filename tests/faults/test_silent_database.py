"""PostgreSQL goes silent: every caller is answered in time, and told the truth."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError
from tests.databases import STARTS_A_SERVER
from tests.faults.line import SilentLine, silent_line
from tests.gate.tools import end_the_time, give_time
from tests.patience import PATIENT

from toolgate import app, background
from toolgate.db.outages import DatabaseTimeout
from toolgate.gate.calls import Call
from toolgate.gate.pipeline import Gate
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]

SECONDS = 2.0
IN_TIME = 40.0
"""Far more than a call may take, for a busy machine; far less than TCP would."""
LONG = 10 * PATIENT
NEW: dict[str, Any] = {"collection": "apps", "document_id": "x", "data": {"a": 1}}


@pytest.fixture
async def silent(tmp_path: Path, postgres_database: str) -> AsyncIterator[tuple[SilentLine, Kit]]:
    async with (
        silent_line(postgres_database) as (line, url),
        opened_kit(tmp_path, writes=True, database__url=url) as kit,
    ):
        yield line, kit
        line.resume()


def wait_for(kit: Kit, seconds: float) -> None:
    """How long a call may take from now on, and the database to answer the gate itself."""
    give_time(kit, seconds)
    kit.app.gate.database.patience = seconds


def freeze(line: SilentLine, kit: Kit) -> None:
    """The database goes silent; there it is waited for no longer than that."""
    wait_for(kit, SECONDS)
    line.freeze()


async def in_time(kit: Kit, tool: str, **arguments: Any) -> tuple[int, float]:
    began = time.monotonic()
    async with asyncio.timeout(IN_TIME):
        outcome = await kit.call(tool, **arguments)
    return outcome.status, time.monotonic() - began


async def test_a_read_and_a_write_are_answered_at_their_deadline(
    silent: tuple[SilentLine, Kit],
) -> None:
    line, kit = silent
    assert (await kit.call("get_document", collection="apps", document_id="x")).status == 404
    assert (await kit.call("query_collection", collection="apps")).status == 200
    freeze(line, kit)
    read, search, write = await asyncio.gather(
        in_time(kit, "get_document", collection="apps", document_id="x"),
        in_time(kit, "query_collection", collection="apps"),
        in_time(kit, "create_document", **NEW),
    )
    assert read[0] in (503, 504)
    assert search[0] in (503, 504)
    assert write[0] in (503, 504)
    print(f"answered after {read[1]:.2f} s and {write[1]:.2f} s; limit {SECONDS} s")
    line.cut()
    line.resume()
    await answers_again(kit)
    assert (await kit.call("create_document", **NEW)).status == 200


async def answers_again(kit: Kit) -> None:
    wait_for(kit, PATIENT)
    async with asyncio.timeout(PATIENT):
        while (await kit.call("get_document", collection="apps", document_id="y")).status != 404:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_many_calls_at_once_are_all_answered_and_hold_nothing_up(
    silent: tuple[SilentLine, Kit],
) -> None:
    line, kit = silent
    line.freeze()
    wait_for(kit, LONG)
    asked = [in_time(kit, "get_document", collection="apps", document_id="x") for _ in range(60)]
    answers = asyncio.gather(*asked)
    running = kit.app.gate.limits.deadlines.running
    while len(running) < len(asked):  # noqa: ASYNC110
        await asyncio.sleep(0)
    call = Call(
        tool="list_collections", arguments={}, principal=ADMIN, request_id="r", transport="test"
    )
    with pytest.raises(StopIteration) as healthy:  # answered at once: it waits for nothing
        kit.app.gate.execute(call).send(None)
    assert healthy.value.value.status == 200
    end_the_time(kit)
    assert {status for status, _ in await answers} <= {503, 504}
    line.cut()
    line.resume()
    await answers_again(kit)


async def test_the_gate_itself_waits_no_longer_for_a_key_than_a_call_may_take(
    silent: tuple[SilentLine, Kit],
) -> None:
    line, kit = silent
    made = await kit.app.keys.create(days=1)
    freeze(line, kit)
    async with asyncio.timeout(IN_TIME):
        with pytest.raises(DatabaseTimeout):
            await kit.app.keys.look_up(made.key)


async def test_closing_does_not_wait_for_a_silent_database(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "CLOSE_SECONDS", SECONDS)
    monkeypatch.setattr(background, "STOP_SECONDS", SECONDS)
    async with silent_line(postgres_database) as (line, url):
        async with opened_kit(tmp_path, database__url=url) as kit:
            await kit.call("list_collections")
            freeze(line, kit)
            began = time.monotonic()
        print(f"closed after {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < IN_TIME


async def test_after_closing_a_call_is_refused_and_not_a_defect(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened_kit(tmp_path, writes=True, database__url=database_url) as kit:
        gate: Gate = kit.app.gate
    assert (await kit.call("create_document", **NEW)).status == 503
    await gate.database.close()
    assert not [one for one in caplog.records if one.exc_info]


# A commit that is not confirmed ---------------------------------------------------------------


async def rows_of(kit: Kit) -> list[tuple[str, str, str | None]]:
    rows = await kit.audit_rows()
    return [(row["id"], row["tool_name"], row["error_type"]) for row in rows]


async def rows_of_the_write(kit: Kit) -> list[tuple[str, str, str | None]]:
    """Once there are some: a row may wait for a commit that is still on its way.

    Of the connections that were cut, some may be found out only when they are used.
    """
    async with asyncio.timeout(PATIENT):
        while True:
            with contextlib.suppress(DBAPIError):
                if rows := [one for one in await rows_of(kit) if one[1] == "create_document"]:
                    return rows
            await asyncio.sleep(0.05)


STORED = b"create_document"
"""In the audit row of the write, which is stored with it in one statement."""


def go_the_usual_way(kit: Kit) -> None:
    """Let writes take their steps in a transaction, as larger ones do."""
    kit.app.gate.database.row_store = None


@pytest.mark.parametrize("then", ["cut", "silent"])
@pytest.mark.parametrize("sent", [STORED, b"COMMIT"])
async def test_a_commit_whose_answer_is_lost_leaves_one_row_and_the_truth_is_told(
    silent: tuple[SilentLine, Kit], sent: bytes, then: str
) -> None:
    line, kit = silent
    if sent == b"COMMIT":
        go_the_usual_way(kit)
    line.watch_for = sent
    asked = asyncio.create_task(kit.call("create_document", **NEW))
    async with asyncio.timeout(IN_TIME):
        await line.came.wait()
        line.watch_for = b""
        if then == "cut":
            line.cut()
            line.resume()
        else:
            end_the_time(kit)
        outcome = await asked
    line.cut()
    line.resume()
    await answers_again(kit)
    (row,) = await rows_of_the_write(kit)
    stored = (await kit.call("get_document", collection="apps", document_id="x")).status == 200
    if stored:
        assert row[2] is None
        assert outcome.status in (200, 504)
    if outcome.status == 504:
        assert outcome.error_type == "outcome_unknown"
        assert row[0] in outcome.body["error"]
    else:
        assert outcome.status == (200 if stored else 503)


def in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Have the event loop do something, and wait until it has."""
    done = threading.Event()
    loop.call_soon_threadsafe(lambda: (work(), done.set()))
    assert done.wait(PATIENT)


async def test_a_statement_that_never_came_leaves_one_row_of_a_write_that_is_unknown(
    silent: tuple[SilentLine, Kit],
) -> None:
    line, kit = silent
    assert (await kit.call("create_document", **NEW | {"document_id": "first"})).status == 200
    line.freeze()
    asked = asyncio.create_task(kit.call("create_document", **NEW))
    async with asyncio.timeout(IN_TIME):
        await line.asked.wait()
        end_the_time(kit)
        outcome = await asked
    assert outcome.error_type == "outcome_unknown"
    line.cut()
    line.resume()
    await answers_again(kit)
    row = (await rows_of_the_write(kit))[-1]
    assert row[2] == "outcome_unknown"
    assert row[0] in outcome.body["error"]
    assert (await kit.call("get_document", collection="apps", document_id="x")).status == 404


async def test_a_write_that_was_not_stored_leaves_its_one_row_under_the_same_id(
    silent: tuple[SilentLine, Kit],
) -> None:
    """The commit never reached the database."""
    line, kit = silent
    within = kit.app.gate.audit.store_with_write

    loop = asyncio.get_running_loop()

    def freeze() -> None:
        line.freeze()
        line.watch_for = b"COMMIT"

    def then_freeze(tx: Any, record: Any) -> None:
        within(tx, record)
        tx.defer(lambda _: in_loop(loop, freeze))

    object.__setattr__(kit.app.gate.audit, "store_with_write", then_freeze)
    asked = asyncio.create_task(kit.call("create_document", **NEW))
    async with asyncio.timeout(IN_TIME):
        await line.came.wait()
        line.watch_for = b""
        end_the_time(kit)
        outcome = await asked
    assert outcome.error_type == "outcome_unknown"
    line.cut()
    line.resume()
    await answers_again(kit)
    rows = await rows_of_the_write(kit)
    assert [one[2] for one in rows] == ["outcome_unknown"]
    assert rows[0][0] in outcome.body["error"]
    assert (await kit.call("get_document", collection="apps", document_id="x")).status == 404


# The log --------------------------------------------------------------------------------------


async def test_an_outage_is_told_in_a_few_lines_without_a_traceback(
    silent: tuple[SilentLine, Kit], caplog: pytest.LogCaptureFixture
) -> None:
    line, kit = silent
    caplog.set_level(logging.INFO)
    began = time.monotonic()
    freeze(line, kit)
    line.cut()
    for _ in range(20):
        await asyncio.gather(
            *(kit.call("get_document", collection="apps", document_id="x") for _ in range(20))
        )
        line.cut()
    told = [one.getMessage() for one in caplog.records]
    minutes = int((time.monotonic() - began) / 60) + 1
    assert 1 <= len(told) <= 6 * minutes, told
    assert not [one for one in caplog.records if one.exc_info]
    line.cut()
    line.resume()
    await answers_again(kit)
