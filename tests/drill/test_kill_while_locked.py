"""Killed while another process holds SQLite's write lock: little lacks its row."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.server import served

HELD_AFTER = 1.5
"""Half a second is promised; a busy machine may need more to see that it has passed."""
LOCKED_SECONDS = 5.0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("round", range(3))
def test_what_was_answered_and_is_lost_was_answered_in_the_last_moment(
    tmp_path: Path, round: int
) -> None:
    file = tmp_path / "data" / "toolgate.db"
    answered: dict[str, float] = {}
    with (
        served(tmp_path / "data", limits__seconds="1") as running,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        while (passed := time.monotonic() - began) < LOCKED_SECONDS:
            name = f"r{len(answered)}"
            if running.call("list_collections", name).status == 200:
                answered[name] = passed
        running.kill()
    with closing(sqlite3.connect(file)) as connection:
        kept = {one for (one,) in connection.execute("SELECT request_id FROM audit")}
    lost = {name: when for name, when in answered.items() if name not in kept}
    print(f"{len(answered)} answered, {len(lost)} lost, the last after {max(lost.values()):.2f} s")
    assert max(answered.values()) < HELD_AFTER
