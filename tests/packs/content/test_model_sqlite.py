"""Whatever is stored, the tools answer what a naive reading of plain lists answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.effort import effort
from tests.packs.content.model import Reading, World, compare, opened_gate, worlds
from tests.packs.content.worlds import cases

from toolgate.testing import Kit


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[tuple[Kit, Any]]:
    with opened_gate(f"sqlite:///{tmp_path / 'toolgate.db'}", tmp_path) as opened:
        yield opened


@pytest.mark.timeout(900)
@worlds(effort(60, 1000))
@given(case=cases)
def test_the_tools_answer_what_the_lists_say(
    gate: tuple[Kit, Any], case: tuple[World, list[Reading]]
) -> None:
    compare(gate, case)
