"""A setting that one worker stores steers the other within a second: measured, so not in the suite.

What the suite shows is that it does at all (`tests/packs/orchestrator/test_two_workers.py`).
"""

import time
from typing import Any

import pytest
from tests.packs.orchestrator.test_two_workers import DISABLED, TASK, server
from tests.servers import Server

__all__ = ["server"]

TOOL = "db.task.get"
ROUNDS = 5
WATCHED_SECONDS = 2.0
MAX_SECONDS = 1.0


def call(server: Server, tool: str, **arguments: Any) -> int:
    """On a connection of its own, so by either worker."""
    with server.client() as client:
        return client.post(f"/v1/tools/{tool}", json=arguments).status_code


def last_stale(server: Server, *, known: bool) -> float:
    """How long after now a worker still began to answer as before."""
    began = time.monotonic()
    last = 0.0
    while (asked := time.monotonic() - began) < WATCHED_SECONDS:
        if (call(server, TOOL, **TASK) == 200) is not known:
            last = asked
    return last


@pytest.mark.timeout(300)
def test_both_workers_know_within_a_second(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"key": DISABLED, "value_type": "array"}
    assert call(server, "db.system_setting.create", **value, value=[]) == 200
    seen: list[float] = []
    for _ in range(ROUNDS):
        for disabled in ([TOOL], []):
            assert call(server, "db.system_setting.update", **value, value=disabled) == 200
            seen.append(last_stale(server, known=not disabled))
    with capsys.disabled():
        print(f"\nthe last answer as before came {max(seen):.2f} s after the change")
    assert max(seen) <= MAX_SECONDS, seen
