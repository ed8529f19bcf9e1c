"""Values that JSON can say and a database cannot keep: refused in words, never a defect."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.needed_packs import needs_pack

from toolgate import packs
from toolgate.gate.catalogue import AnyTool
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

ODD: dict[str, Any] = {
    "nul": "a\x00b",
    "half a pair": "a\ud800b",
    "large": 2**70,
    "deep nul": {"a": ["x\x00"]},
    "nul key": {"a\x00": 1},
    "deep half": [{"a": "\udfff"}],
    "deep large": [[2**70]],
    "not a number": float("nan"),
    "endless": {"a": float("inf")},
}
TASK = "00000000-0000-4000-8000-0000000000b1"
"""A task of the demo data."""
BASE: dict[str, dict[str, Any]] = {
    "operator.user.create": {"user_id": "carol"},
    "operator.group.create": {"group_id": "writers"},
    "operator.project.create": {"slug": "new"},
    "artifact.put": {"path": "x"},
}


def cases(tool: AnyTool) -> list[tuple[str, dict[str, Any]]]:
    """A tool's example with one argument after the other odd."""
    base = {**tool.example, **BASE.get(tool.name, {})}
    if "task_id" in tool.input.model_fields:
        base.setdefault("task_id", TASK)
    return [
        (f"{tool.name} {field}: {name}", {**base, field: odd})
        for field in tool.input.model_fields
        for name, odd in ODD.items()
    ]


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings = {"database__url": database_url, "packs__enabled": packs.SHIPPED}
    async with opened_kit(tmp_path, writes=True, demo_data=True, **settings) as opened:
        yield opened


async def test_no_odd_value_of_any_argument_is_a_defect(kit: Kit) -> None:
    wrong: dict[str, Any] = {}
    for tool in kit.app.gate.visible(ADMIN):
        for case, arguments in cases(tool):
            outcome = await kit.call(tool.name, ADMIN, dry_run=bool(tool.writes), **arguments)
            if outcome.error_type in ("internal_error", "unavailable"):
                wrong[case] = outcome.body
    assert wrong == {}


@needs_pack("orchestrator")
async def test_the_agents_pack_refuses_the_character_nul_on_every_database(kit: Kit) -> None:
    tools = [tool for tool in kit.app.gate.visible(ADMIN) if tool.pack.name == "orchestrator"]
    for tool in tools:
        for field in tool.input.model_fields:
            outcome = await kit.call(tool.name, ADMIN, **{**tool.example, field: "a\x00b"})
            assert outcome.error_type == "invalid_arguments", f"{tool.name} {field}"
