"""Killed at thirty moments while artifacts are stored: never a row without its blob."""

from pathlib import Path

import pytest
from tests.packs.orchestrator.artifact_kills import check_kill

ROUNDS = 30


@pytest.mark.timeout(300)
@pytest.mark.parametrize("round", range(ROUNDS))
def test_a_kill_at_any_moment_leaves_whole_artifacts(tmp_path: Path, round: int) -> None:
    print(check_kill(tmp_path / "data", 5 + round, wait=round * 0.0037))
