"""Runs the test suite again and again beside busy loops: `python -m tests.steady --times 10`.

A suite that passes ten times on a machine with nothing left to give does not fail by chance.
Everything after `--` goes to pytest.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUSY = "while True: pass"


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


def main() -> int:
    """Run, report each round, and fail if any round did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--workers", default="2")
    parser.add_argument("pytest", nargs="*", help="what to run; everything unless given")
    given = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-n", given.workers, "--dist", "loadfile"]
    failed = 0
    with busy_loops(given.loops):
        for round_number in range(1, given.times + 1):
            began = time.monotonic()
            done = subprocess.run([*command, *given.pytest], check=False)
            took = time.monotonic() - began
            failed += done.returncode != 0
            result = "passed" if done.returncode == 0 else f"failed ({done.returncode})"
            print(f"round {round_number} of {given.times}: {result} in {took:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
