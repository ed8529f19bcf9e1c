"""Runs the test suite again and again beside busy loops: `python -m tests.steady --times 10`.

A suite that passes ten times on a machine with nothing left to give does not fail by chance.
Each round's output is kept in a file of `.cache/steady`. Everything after `--` goes to pytest.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY = "while True: pass"
LOGS = Path(__file__).parents[1] / ".cache" / "steady"
FAULTS = ("FAILED ", "ERROR ", "INTERNALERROR", "!!!!")
"""How lines of pytest begin that say what did not pass."""


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Processes that take all the processor time they get."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def one_round(command: list[str], log: Path) -> tuple[bool, str]:
    """Whether all passed, and what to tell of it."""
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    took = time.monotonic() - began
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["no output"]
    result = "passed" if done.returncode == 0 else f"failed ({done.returncode})"
    faults = [f"  {line}" for line in lines if line.startswith(FAULTS)]
    return done.returncode == 0, "\n".join(
        [f"{result} in {took:.0f} s: {lines[-1]} ({log})", *faults]
    )


def main() -> int:
    """Run, report each round, and fail if any round did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--workers", default="4")
    parser.add_argument("pytest", nargs="*", help="what to run; everything unless given")
    given = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    spread = ["-n", given.workers, "--dist", "loadfile", "--no-loadscope-reorder"]
    command = [sys.executable, "-m", "pytest", *spread, "-rfEs"]
    failed = 0
    with busy_loops(given.loops):
        for number in range(1, given.times + 1):
            passed, told = one_round([*command, *given.pytest], LOGS / f"round-{number}.log")
            failed += not passed
            print(f"round {number} of {given.times}: {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
