"""CPU time of a process and all its descendants, to the nanosecond where the kernel tells it."""

import time
from collections.abc import Iterable
from pathlib import Path

import psutil

SCHEDULER = 2
"""Kind of a Linux process clock that counts what the scheduler gave, not timer ticks."""
BUSY = 0.02
MAX_WINDOWS = 20

Times = dict[int, int]


def tree(roots: Iterable[int]) -> list[int]:
    """The processes and all that came from them."""
    found: dict[int, None] = {}
    for root in roots:
        found[root] = None
        try:
            children = psutil.Process(root).children(recursive=True)
        except psutil.NoSuchProcess:
            continue
        found.update(dict.fromkeys(child.pid for child in children))
    return list(found)


def spent(roots: Iterable[int]) -> Times:
    """Nanoseconds of CPU so far, by process; all threads count, also those that ended."""
    times: Times = {}
    for pid in tree(roots):
        try:
            times[pid] = of_process(pid)
        except (OSError, psutil.NoSuchProcess):
            continue
    return times


def of_process(pid: int) -> int:
    """Nanoseconds of CPU of one process; where it has no clock, from ticks of 10 ms."""
    try:
        # What clock_getcpuclockid(3) makes of a process id.
        return time.clock_gettime_ns((~pid << 3) | SCHEDULER)
    except OSError:
        used = psutil.Process(pid).cpu_times()
        return round((used.user + used.system) * 1e9)


def waited(pid: int) -> int:
    """Nanoseconds that a process's main thread could have run, but had no core; 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def between(before: Times, after: Times) -> int:
    """Nanoseconds that passed on the CPU from one look to a later one."""
    return sum(ns - before.get(pid, 0) for pid, ns in after.items())


def settle(roots: list[int], window: float) -> None:
    """Wait until the processes have done for a while nothing of what they put off."""
    for _ in range(MAX_WINDOWS if window else 0):
        before = spent(roots)
        time.sleep(window)
        if between(before, spent(roots)) < BUSY * window * 1e9:
            return
