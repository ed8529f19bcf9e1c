"""A setting that one worker stores steers the other within a second: measured, so not in the suite.

What the suite shows is that it does at all (`tests/packs/orchestrator/test_two_workers.py`).
"""

import time

import httpx2
import pytest
from tests.packs.orchestrator.test_two_workers import DISABLED, knows, server, workers

__all__ = ["server", "workers"]

TOOL = "db.task.get"
ROUNDS = 5
WATCHED_SECONDS = 2.0
MAX_SECONDS = 1.0


def last_stale(workers: list[httpx2.Client], *, known: bool) -> float:
    """How long after now a worker still began to answer as before."""
    began = time.monotonic()
    last = 0.0
    while (asked := time.monotonic() - began) < WATCHED_SECONDS:
        if not all(knows(TOOL, known=known)(worker) for worker in workers):
            last = asked
    return last


@pytest.mark.timeout(300)
def test_both_workers_know_within_a_second(
    workers: list[httpx2.Client], capsys: pytest.CaptureFixture[str]
) -> None:
    def store(tool: str, value: list[str]) -> None:
        body = {"key": DISABLED, "value_type": "array", "value": value}
        assert workers[0].post(f"/v1/tools/{tool}", json=body).status_code == 200

    store("db.system_setting.create", [])
    seen: list[float] = []
    for _ in range(ROUNDS):
        for disabled in ([TOOL], []):
            store("db.system_setting.update", disabled)
            seen.append(last_stale(workers, known=not disabled))
    with capsys.disabled():
        print(f"\nthe last answer as before came {max(seen):.2f} s after the change")
    assert max(seen) <= MAX_SECONDS, seen
