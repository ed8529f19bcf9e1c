"""What an operator switches off is off in every worker, without a restart; on both databases."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text
from tests import statements
from tests.gate.tools import ADMIN, USER, a_tool, is_stored, offer, storing
from tests.patience import PATIENT

from toolgate.gate import live_switches
from toolgate.gate.live_switches import LiveSwitches, SwitchedOff, switch, switched_off
from toolgate.gate.tool import Effect
from toolgate.setting_types import BadSettings
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

PLUGINS = offer(
    a_tool("db.task.get"),
    a_tool("db.task.list"),
    a_tool("db.write", storing(), effect=Effect.WRITE),
    a_tool("send", pack="network"),
)


@pytest.fixture(autouse=True)
def _looks_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_switches, "SECONDS", 3600.0)


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "policy__disabled": "db.task.list"}
    async with opened_kit(tmp_path, plugins=PLUGINS, **settings) as opened:
        yield opened


async def turn(kit: Kit, name: str, *, off: bool) -> bool:
    """As an operator's command does, in whatever process."""
    return await kit.app.gate.database.write(lambda c: switch(c, name, off=off))


def seen(kit: Kit) -> set[str]:
    gate = kit.app.gate
    every = {tool.name for offers in PLUGINS for tool in offers.tools}
    return every & {tool.name for tool in gate.visible(ADMIN)}


async def test_a_worker_takes_what_is_new_when_it_looks(kit: Kit) -> None:
    live = kit.app.gate.switches
    assert seen(kit) == {"db.task.get", "db.write", "send"}, "the setting holds"
    assert not await live.read_if_changed()
    assert await turn(kit, "db.task.get", off=True)
    assert (await kit.call("db.task.get")).status == 200, "not known yet"
    assert await live.read_if_changed()
    assert seen(kit) == {"db.write", "send"}
    outcome = await kit.call("db.task.get")
    assert (outcome.status, outcome.error_type) == (403, "tool_disabled")
    stranger = await kit.call("db.task.get", USER)
    assert (stranger.status, stranger.error_type) == (404, "not_found"), "who never saw it"
    rules = [row["rule"] for row in await kit.audit_rows() if row["subject_id"] == ADMIN.id]
    assert rules[-1] == "tool-switched-off"
    assert await turn(kit, "db.task.get", off=False)
    assert await live.read_if_changed()
    assert seen(kit) == {"db.task.get", "db.write", "send"}, "the setting still holds"


async def test_a_pack_is_switched_off_as_a_whole(kit: Kit) -> None:
    assert await turn(kit, "orchestrator", off=True)
    assert await turn(kit, "send", off=True)
    assert await kit.app.gate.switches.read_if_changed()
    assert seen(kit) == set()
    assert await turn(kit, "orchestrator", off=False)
    assert await kit.app.gate.switches.read_if_changed()
    assert seen(kit) == {"db.task.get", "db.write"}


async def test_a_gate_that_opens_later_knows_it_from_the_first_call(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    assert await turn(kit, "db.task.get", off=True)
    other = opened_kit(tmp_path / "other", plugins=PLUGINS, database__url=database_url)
    async with other as later:
        assert seen(later) == {"db.task.list", "db.write", "send"}


async def test_every_change_has_an_epoch_and_a_row_and_what_changes_nothing_has_none(
    kit: Kit,
) -> None:
    database = kit.app.gate.database
    assert [await turn(kit, "send", off=off) for off in (False, True, True, False)] == [
        False,
        True,
        False,
        True,
    ]
    assert await database.read(switched_off) == SwitchedOff(frozenset(), 2)
    rows = await kit.audit_rows()
    assert [row["tool_name"] for row in rows] == ["switch.off:send", "switch.on:send"]
    assert {row["subject_type"] for row in rows} == {"operator"}


async def test_changes_at_the_same_time_are_all_kept(kit: Kit) -> None:
    names = [f"tool{number}" for number in range(8)]
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(lambda name=name: turn(kit, name, off=True))
    found = await kit.app.gate.database.read(switched_off)
    assert found == SwitchedOff(frozenset(names), len(names))


async def test_a_look_without_news_is_one_statement(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "BESIDE_CALLS", ["FROM credential_changes"])
    with statements.noted_statements() as asked:
        assert not await kit.app.gate.switches.read_if_changed()
    assert len(asked) == 1, asked


async def test_who_listens_is_told_once_for_a_change(kit: Kit) -> None:
    told: list[set[str]] = []

    async def listen() -> None:
        told.append(seen(kit))

    kit.app.gate.catalogue.listeners.append(listen)
    epoch = kit.app.gate.catalogue.epoch
    await kit.app.gate.switches.read_if_changed()
    await turn(kit, "send", off=True)
    await kit.app.gate.switches.read_if_changed()
    await kit.app.gate.switches.read_if_changed()
    assert told == [{"db.task.get", "db.write"}]
    assert kit.app.gate.catalogue.epoch == epoch + 1, "lists that were made are made again"


async def test_it_looks_after_every_pause(kit: Kit) -> None:
    gate = kit.app.gate
    pauses = 0
    looked = anyio.Event()

    async def pause() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 2:
            await turn(kit, "send", off=True)
        if pauses == 4:
            looked.set()
            await anyio.sleep_forever()

    live = LiveSwitches(gate.database, gate.policy, gate.catalogue, pause)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live.run)
        with anyio.fail_after(PATIENT):
            await looked.wait()
        tasks.cancel_scope.cancel()
    assert live.known == SwitchedOff(frozenset({"send"}), 1)
    assert "send" not in seen(kit)


async def test_while_the_switches_cannot_be_read_the_last_state_holds_and_nothing_is_written(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    gate = kit.app.gate
    await turn(kit, "send", off=True)
    await gate.switches.read_if_changed()
    away = text("ALTER TABLE switches RENAME TO switches_away")
    back = text("ALTER TABLE switches_away RENAME TO switches")
    await gate.database.write(lambda c: c.execute(away))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert not await gate.switches.read_if_changed()
    assert sum("Reading the switches fails" in line for line in caplog.messages) == 1
    assert seen(kit) == {"db.task.get", "db.write"}
    assert (await kit.call("db.task.get")).status == 200
    for dry_run in (False, True):
        refused = await kit.call("db.write", dry_run=dry_run)
        assert (refused.status, refused.error_type) == (503, "unavailable")
    assert not await is_stored(kit)
    await gate.database.write(lambda c: c.execute(back))
    assert (await kit.call("db.write")).status == 200, "a write does not wait for the next look"
    assert seen(kit) == {"db.task.get", "db.write"}


async def test_the_setting_takes_packs_and_refuses_what_is_neither(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, plugins=PLUGINS, policy__disabled="network") as kit:
        assert seen(kit) == {"db.task.get", "db.task.list", "db.write"}
    with pytest.raises(BadSettings, match=r"policy\.disabled names nope"):
        async with opened_kit(tmp_path, plugins=PLUGINS, policy__disabled="nope"):
            pass
