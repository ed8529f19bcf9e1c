"""Workflows that start by themselves: each time once, however many workers look at the clock."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, select, update

from toolgate.db.outages import is_outage
from toolgate.db.workflow_holds import HELD, RESTING
from toolgate.db.workflow_tables import workflow_schedules as schedules
from toolgate.workflows.declarations import stamp
from toolgate.workflows.runs import Runs, insert_or_join
from toolgate.workflows.statements import INSERTS

LOOK_AGAIN = timedelta(seconds=10)
"""Whether schedules that rest may go on."""
logger = logging.getLogger(__name__)


class BadSchedule(ValueError):
    """A workflow's schedule is no cron expression."""


class Schedules:
    """Starts what is due.

    When each is due next is a row of the database. Who moves it on starts the run, in the same
    commit; times that went by while no server ran are made up for by one run. In a restored
    database nothing starts before an operator says so.
    """

    def __init__(self, runs: Runs, worlds: Mapping[str, Any]) -> None:
        """`worlds`: the open ports of each pack."""
        self._runs = runs
        self._worlds = worlds
        self._expressions: Mapping[str, str] = {
            name: one.schedule for name, one in runs.declared.items() if one.schedule
        }
        for name, expression in self._expressions.items():
            _next_time(name, expression, runs.clock())
        self._next: datetime | None = None
        """No row is due before."""
        self._resting = False

    async def start_due(self) -> None:
        """Start what is due; until something is, the database is not asked."""
        now = self._runs.clock()
        if not self._expressions or (self._next is not None and now < self._next):
            return
        idle = [name for name in self._expressions if not await self._has_work(name)]
        self._next = await self._runs.database.write(lambda c: self._start_due(c, now, idle))

    async def _has_work(self, name: str) -> bool:
        when = self._runs.declared[name].when
        if when is None:
            return True
        try:
            return await when(self._worlds.get(name.partition("/")[0]))
        except Exception as problem:
            if is_outage(problem):
                raise
            return True  # the run finds out what is wrong, and that is told

    def _start_due(self, connection: Connection, now: datetime, idle: Sequence[str]) -> datetime:
        stored = {row.workflow: row for row in connection.execute(select(schedules))}
        if HELD in stored:
            if not self._resting:
                logger.warning("%s", RESTING)
            self._resting = True
            return now + LOOK_AGAIN
        self._resting = False
        upcoming: list[datetime] = []
        for name, expression in self._expressions.items():
            row = stored.get(name)
            following = _next_time(name, expression, now)
            if row is None or row.expression != expression:
                _store(connection, name, expression, following)
            elif row.next_at > stamp(now):
                following = datetime.fromisoformat(row.next_at)
            elif _move_on(connection, name, row.next_at, following) and name not in idle:
                new = self._runs.new_row(name, key=f"schedule {row.next_at}")
                insert_or_join(connection, new)
            upcoming.append(following)
        return min(upcoming)


def _next_time(name: str, expression: str, after: datetime) -> datetime:
    try:
        return next(CronSim(expression, after))
    except (CronSimError, StopIteration) as problem:
        raise BadSchedule(f"Workflow {name}: {expression!r} is no schedule ({problem}).") from None


def _store(connection: Connection, name: str, expression: str, following: datetime) -> None:
    values = {"expression": expression, "next_at": stamp(following)}
    insert = INSERTS[connection.dialect.name](schedules).values(workflow=name, **values)
    connection.execute(insert.on_conflict_do_update(index_elements=["workflow"], set_=values))


def _move_on(connection: Connection, name: str, due: str, following: datetime) -> bool:
    """Say when it is due next; False where another worker has said so."""
    same = (schedules.c.workflow == name) & (schedules.c.next_at == due)
    change = update(schedules).where(same).values(next_at=stamp(following))
    return bool(connection.execute(change).rowcount)
