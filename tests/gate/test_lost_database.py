"""No call is answered from a database whose file is gone, or whose rows cannot be stored."""

import asyncio
import re
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import create_engine, text
from tests.gate.tools import a_tool, offer, storing
from tests.patience import PATIENT

from toolgate.db.outages import describe
from toolgate.gate.audit import AuditUnavailable
from toolgate.gate.audit_records import timestamp
from toolgate.gate.tool import Effect
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
WRITE = offer(a_tool("db.write", storing(), effect=Effect.WRITE), a_tool("list_things"))


async def refused(kit: Kit) -> None:
    """Wait until the audit says that calls are refused; without a call that would tell it."""
    with anyio.fail_after(PATIENT):
        while not kit.app.gate.audit.blocked:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("replaced", [False, True])
async def test_nothing_is_written_to_a_file_that_was_deleted_or_replaced(
    tmp_path: Path, replaced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "toolgate.db"
    aside = tmp_path / "aside.db"
    async with opened_kit(tmp_path, writes=True, plugins=WRITE) as kit:
        file.rename(aside)
        if replaced:
            file.write_bytes(aside.read_bytes())
        await refused(kit)
        assert (await kit.call("db.write")).status == 503
        assert (await kit.call("list_things")).status == 503
        assert any("was deleted or replaced; restart" in one for one in caplog.messages)
        aside.rename(file)
        await kit.app.gate.audit.flush()
        assert (await kit.call("list_things")).error is None


async def test_the_audit_is_not_ready_while_calls_wait_for_it(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, plugins=WRITE) as kit:
        patience, kit.app.gate.database.patience = kit.app.gate.database.patience, 0.5
        engine = create_engine(f"sqlite:///{tmp_path / 'toolgate.db'}")
        with engine.connect() as other:
            other.execute(text("BEGIN IMMEDIATE"))
            await kit.call("list_things")
            await refused(kit)
            with pytest.raises(AuditUnavailable):
                await kit.app.gate.audit.check()
        engine.dispose()
        kit.app.gate.database.patience = patience
        await kit.app.gate.audit.flush()
        await kit.app.gate.audit.check()


async def test_the_end_of_an_outage_is_told_without_another_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolgate.db.outages.QUIET_SECONDS", 0.0)
    file, aside = tmp_path / "toolgate.db", tmp_path / "aside.db"
    async with opened_kit(tmp_path, plugins=WRITE) as kit:
        file.rename(aside)
        await refused(kit)
        aside.rename(file)
        await kit.app.gate.audit.flush()
        assert any("no call is answered, works again" in one for one in caplog.messages)


async def test_rows_that_are_lost_at_the_end_are_told_with_their_number_and_times(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = timestamp()
    async with opened_kit(tmp_path, plugins=WRITE) as kit:
        (tmp_path / "toolgate.db").rename(tmp_path / "aside.db")
        await refused(kit)
        for _ in range(3):
            await kit.call("list_things")
    lost = re.compile(
        rf"the last 2 audit rows \(3 calls, from ({TIME}) to ({TIME})\) could not be stored: "
    )
    [found] = [found for one in caplog.messages if (found := lost.match(one))]
    assert before <= found[1] < found[2] <= timestamp()


async def test_rows_that_only_could_not_be_sealed_are_not_called_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails() -> None:
        raise TimeoutError

    async with opened_kit(tmp_path, plugins=WRITE) as kit:
        await kit.call("list_things")
        monkeypatch.setattr(kit.app.sealer, "seal", fails)
    assert caplog.messages[-1] == (
        "the last audit rows are stored, but not sealed yet: no answer in time"
    )


def test_what_has_no_words_of_its_own_is_worded() -> None:
    assert describe(TimeoutError()) == "no answer in time"
    assert describe(asyncio.CancelledError()) == "it was stopped before it had ended"
