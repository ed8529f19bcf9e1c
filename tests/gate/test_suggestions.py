"""A misspelled tool is answered with the nearest one, of those that the caller sees."""

from pathlib import Path

import pytest
from tests.gate.tools import AGENTS, USER, a_tool, offer

from toolgate.gate import pipeline
from toolgate.gate.principal import ANONYMOUS, AgentType, Principal, Role
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

HIDDEN = a_tool("ledger.close", role=Role.ADMIN)
SEEN = a_tool("ledger.clone", role=Role.USER)


async def told(kit: Kit, name: str, principal: Principal = ADMIN) -> str:
    outcome = await kit.call(name, principal)
    assert outcome.status == 404
    return outcome.body["error"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("get_documnt", "get_document"),
        ("getDocument", "get_document"),
        ("search_entity", "search_entities"),
        ("ledger_closed", "ledger.close"),
    ],
)
async def test_what_was_meant_is_named(tmp_path: Path, name: str, near: str) -> None:
    async with opened_kit(tmp_path, plugins=offer(HIDDEN)) as kit:
        assert await told(kit, name) == f"Unknown tool: {name}. Did you mean {near!r}?"


async def test_a_tool_that_is_switched_off_is_named_to_those_who_would_see_it(
    tmp_path: Path,
) -> None:
    async with opened_kit(tmp_path, plugins=offer(HIDDEN, SEEN)) as kit:
        kit.app.gate.policy.disable(frozenset(["ledger.close"]))
        near = "Unknown tool: ledger.closse. Did you mean 'ledger.{}'?"
        assert await told(kit, "ledger.closse") == near.format("close")
        assert await told(kit, "ledger.closse", USER) == near.format("clone")


async def test_a_name_like_none_gets_no_suggestion(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        for name in ("no_such_tool", "x", "", "g" * 5000):
            assert (await told(kit, name)) == f"Unknown tool: {name[:128]}"


@pytest.mark.parametrize("name", ["ledger.close", "ledger_close", "ledger.closed", "ledger.clos"])
@pytest.mark.parametrize("caller", [USER, AGENTS[AgentType.WORKER]], ids=["user", "worker"])
async def test_a_tool_that_is_hidden_changes_no_answer(
    tmp_path: Path, name: str, caller: Principal
) -> None:
    async with opened_kit(tmp_path / "with", plugins=offer(HIDDEN, SEEN)) as kit:
        hidden = await told(kit, name, caller)
    async with opened_kit(tmp_path / "without", plugins=offer(SEEN)) as kit:
        assert await told(kit, name, caller) == hidden
    assert "close'" not in hidden


async def test_a_stranger_gets_no_suggestion(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        assert await told(kit, "health_chek", ANONYMOUS) == "Unknown tool: health_chek"


async def test_among_very_many_tools_nothing_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_kit(tmp_path) as kit:
        monkeypatch.setattr(pipeline, "MAX_COMPARED", len(kit.app.gate.catalogue))
        assert "get_document" in await told(kit, "get_documnt")
        monkeypatch.setattr(pipeline, "MAX_COMPARED", len(kit.app.gate.catalogue) - 1)
        assert await told(kit, "get_documnt") == "Unknown tool: get_documnt"
