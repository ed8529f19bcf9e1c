"""What an outage leaves of the audit is bounded, and the log says what has no row."""

import asyncio
import time
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.gate.tools import USER

from toolgate.gate.audit_records import Ended, Record, record_of
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

MOST = 3


@pytest.fixture(autouse=True)
def most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.gate.audit.MAX_WAITING", MOST)


@pytest.fixture
async def kit(tmp_path: Any) -> Any:
    async with opened_kit(tmp_path) as opened:
        yield opened


def ended(request_id: str, error_type: str = "rate_limited") -> Ended:
    now = time.time_ns()
    return Ended(request_id, "test", USER, "any", False, "rule", error_type, None, now, 0)


def row(request_id: str) -> Record:
    return record_of(ended(request_id, "outcome_unknown"))


async def away(work: Any) -> Any:
    raise OperationalError("INSERT", None, Exception("connection lost"))


async def test_writes_whose_row_is_given_up_are_counted_in_the_log(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    audit = kit.app.gate.audit
    for number in range(MOST + 2):
        audit.store_unless_there(row(f"r{number}"), "outcome_unknown")
    await audit.flush()
    assert caplog.messages == ["2 calls have no audit row: too many came at once"]
    assert len(await kit.audit_rows()) == MOST


async def test_rows_of_unconfirmed_writes_that_cannot_be_stored_are_told_once(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    audit = kit.app.gate.audit
    with monkeypatch.context() as patched:
        patched.setattr(kit.app.gate.database, "write", away)
        audit.store_unless_there(row("r1"), "outcome_unknown")
        for _ in range(3):
            await audit.flush()
    assert caplog.messages == [
        "Storing audit rows of writes that were not confirmed fails: connection lost"
    ]
    assert [one["request_id"] for one in await kit.audit_rows()] == ["r1"]


async def test_counts_of_refusals_do_not_pile_up_as_rows_during_an_outage(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.gate.audit.MAX_WAITING", 4)
    audit, now = kit.app.gate.audit, [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    minutes = 20
    with monkeypatch.context() as patched:
        patched.setattr(kit.app.gate.database, "write", away)
        for _ in range(minutes):
            for _ in range(2):
                audit.queue_limited(ended("r"))
            now[0] += 61
            with pytest.raises(OperationalError):
                await audit.flush()
    await audit.flush()
    await audit.flush(last=True)
    times = [one["times"] for one in await kit.audit_rows()]
    assert len(times) <= 4, "firsts of a minute, and one row for all others"
    assert sum(times) == 2 * minutes, "nothing is lost"


class HeldWrite:
    """A database that does not store anything until it may."""

    def __init__(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came, self.go_on = asyncio.Event(), asyncio.Event()
        self.times = 0
        self._write = kit.app.gate.database.write
        monkeypatch.setattr(kit.app.gate.database, "write", self.write)

    async def write(self, work: Any) -> Any:
        self.times += 1
        self.came.set()
        await self.go_on.wait()
        return await self._write(work)


async def test_callers_that_go_away_while_a_batch_is_stored_stop_nobody_else(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held, audit = HeldWrite(kit, monkeypatch), kit.app.gate.audit
    for number in range(MOST):
        audit.queue(ended(f"r{number}"))
    assert audit.blocked
    callers = [asyncio.create_task(audit.make_room()) for _ in range(5)]
    await held.came.wait()
    gone, stays = callers[:4], callers[4]
    for one in gone:
        one.cancel()
    await asyncio.wait(gone)
    assert all(one.cancelled() for one in gone)
    held.go_on.set()
    await stays
    await audit.check()
    assert not audit.blocked
    assert held.times == 1
    assert caplog.messages == []
    monkeypatch.undo()
    assert len(await kit.audit_rows()) == MOST
