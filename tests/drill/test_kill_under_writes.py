"""Killed with -9 again and again under sixteen writers: nothing is lost, doubled or left halfway.

KILLS says how often in all (300); SEED makes the same choices again.
"""

import os
from pathlib import Path

import pytest
from tests.faults.kills.cycles import Cycles, seed, url_of

KILLS = int(os.environ.get("KILLS", "300"))
CHECK_EVERY = 5


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_after_every_kill_what_was_acknowledged_is_there_once_and_whole(
    database: str, workers: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = tmp_path / "data"
    cycles = Cycles(data, url_of(database, data, request), workers, seed())
    cycles.run(KILLS // 4, CHECK_EVERY)
