"""The thread that stores audit rows keeps the interpreter for short stretches only.

Counted and not timed: what is called between two moments at which other threads go first.
"""

import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import FEW, Ended, in_batches, record_of
from toolgate.gate.principal import Role, of_role
from toolgate.gate.seals import store_sealed
from toolgate.gate.verification import verify

pytestmark = pytest.mark.anyio

ROWS = 500
"""As many as one transaction stores."""
STRETCH = 24 * FEW
"""Functions of Python and C that are entered between two pauses; a row of a caller who was not met
before takes some twenty."""
HARNESS = {"setprofile"}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'one.db'}")
    await upgrade(opened)
    yield opened
    await opened.close()


def calls(callers: int) -> list[Ended]:
    """Calls that have ended, of so many callers in turn."""
    who = [of_role(Role.USER, f"key:{number}", f"user-{number}") for number in range(callers)]
    return [
        Ended(
            f"request-{number}",
            "mcp",
            who[number % callers],
            "echo",
            True,
            "user-tools",
            None,
            None,
            time.time_ns(),
            0.001,
        )
        for number in range(ROWS)
    ]


def stretches(work: Any) -> list[int]:
    """How many functions are entered between two pauses, each time."""
    found = [0]

    def note(_: Any, event: str, called: Any) -> None:
        if event == "c_call" and called is os.sched_yield:
            found.append(0)
        elif event in ("call", "c_call") and getattr(called, "__name__", "") not in HARNESS:
            found[-1] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("callers", [1, 7, ROWS])
async def test_a_batch_is_stored_in_short_stretches(database: Database, callers: int) -> None:
    found: list[int] = []

    def keep(connection: Connection) -> None:
        def work() -> None:
            rows = [record_of(one) for some in in_batches(calls_of) for one in some]
            store_sealed(connection, rows)

        found.extend(stretches(work))

    for _ in range(2):  # the first time statements are compiled
        found.clear()
        calls_of = calls(callers)
        await database.write(keep)
    assert len(found) > ROWS / FEW
    assert max(found) <= STRETCH, sorted(found)[-5:]


async def test_what_is_stored_so_is_under_seals_that_verify(database: Database) -> None:
    rows = [record_of(one) for one in calls(7)]
    await database.write(lambda connection: store_sealed(connection, rows))
    verdict = await verify(database)
    assert (verdict.rows, verdict.unsealed, verdict.findings) == (ROWS, 0, [])
