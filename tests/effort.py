"""How much a test tries: little in `make test`, which still fails when the code is broken, and a
lot in `make drill`, which runs every test file that imports this module."""

import os

THOROUGH = os.environ.get("EFFORT") == "thorough"


def effort(little: int, lot: int) -> int:
    """How many examples, records or clients to try."""
    return lot if THOROUGH else little
