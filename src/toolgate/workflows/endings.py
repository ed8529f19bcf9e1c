"""How one attempt of a run ends, as it is stored."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from toolgate.db.workflow_tables import workflow_runs as runs
from toolgate.workflows.declarations import RunStatus, stamp
from toolgate.workflows.statements import ENDED

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=10)
"""Before the next attempt: twice as long each time."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of the row."""

    values: dict[str, Any]
    status: RunStatus

    @property
    def final(self) -> bool:
        """Whether nothing more comes."""
        return self.status is not RunStatus.QUEUED


def ended(now: datetime, status: RunStatus, **values: Any) -> Ending:
    """The run has ended."""
    at = stamp(now)
    return Ending(
        ENDED | {"status": status.value, "ended_at": at, "updated_at": at} | values, status
    )


def tried_again(now: datetime, attempts: int, error: str) -> Ending:
    """It is tried again, after a while."""
    pause = min(FIRST_PAUSE * 2 ** min(attempts - 1, 16), LONGEST_PAUSE)
    return _queued(now, now + pause, error=error)


def released(now: datetime, due: datetime) -> Ending:
    """Somebody else may go on with it; this attempt does not count."""
    return _queued(now, due, attempts=runs.c.attempts - 1)


def _queued(now: datetime, due: datetime, **values: Any) -> Ending:
    status = RunStatus.QUEUED
    return Ending(
        {
            "status": status.value,
            "due_at": stamp(due),
            "lease": None,
            "updated_at": stamp(now),
            **values,
        },
        status,
    )
