"""Two real processes on one database; the one that works is killed, the other goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.patience import PATIENT
from tests.workflows import counting_process
from tests.workflows.counting_process import STEPS

pytestmark = pytest.mark.timeout(300)


def steps(lines: Path) -> list[tuple[int, int]]:
    if not lines.exists():
        return []
    pairs = [line.split() for line in lines.read_text().splitlines()]
    return [(int(pid), int(number)) for pid, number in pairs]


def steps_past(lines: Path, many: int) -> list[tuple[int, int]]:
    end = time.monotonic() + PATIENT
    while len(found := steps(lines)) < many:
        assert time.monotonic() < end, found
        time.sleep(0.005)
    return found


def test_a_killed_run_goes_on_in_the_other_process(tmp_path: Path, database_url: str) -> None:
    lines = tmp_path / "lines"
    command = [sys.executable, counting_process.__file__, database_url, str(tmp_path), str(lines)]
    first = subprocess.Popen(command)
    steps_past(lines, 2)
    second = subprocess.Popen(command)
    killed = steps_past(lines, 6)[-1][0]
    assert killed == first.pid, "one works, however many there are"
    os.kill(killed, signal.SIGKILL)
    first.wait(PATIENT)
    assert second.wait(PATIENT) == 0
    done = steps(lines)
    by_first = [number for pid, number in done if pid == first.pid]
    by_second = [number for pid, number in done if pid == second.pid]
    assert by_first == list(range(len(by_first)))
    assert by_second == list(range(by_second[0], STEPS))
    # The one at which it was killed may be done again; no other is, and none is left out.
    assert len(by_first) - 1 <= by_second[0] <= len(by_first)
    assert by_second[0] >= 1


def test_a_stopped_run_is_left_to_others_at_a_checkpoint(tmp_path: Path, database_url: str) -> None:
    """A clean end of the process: the other one neither waits for the lease nor repeats a step."""
    lines = tmp_path / "lines"
    command = [sys.executable, counting_process.__file__, database_url, str(tmp_path), str(lines)]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    steps_past(lines, 3)
    first.send_signal(signal.SIGINT)
    first.wait(PATIENT)
    second = subprocess.Popen(command)
    assert second.wait(PATIENT) == 0
    assert [number for _, number in steps(lines)] == list(range(STEPS))
