"""Workflows that start by themselves: each time once, however many workers look at the clock."""

from collections.abc import Mapping
from datetime import datetime

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, select, update

from toolgate.db.workflow_tables import workflow_schedules as schedules
from toolgate.workflows.declarations import stamp
from toolgate.workflows.runs import Runs, insert_or_join
from toolgate.workflows.statements import INSERTS


class BadSchedule(ValueError):
    """A workflow's schedule is no cron expression."""


class Schedules:
    """Starts what is due.

    When each is due next is a row of the database. Who moves it on starts the run, in the same
    commit; times that went by while no server ran are made up for by one run.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._expressions: Mapping[str, str] = {
            name: one.schedule for name, one in runs.declared.items() if one.schedule
        }
        for name, expression in self._expressions.items():
            _next_time(name, expression, runs.clock())
        self._next: datetime | None = None
        """No row is due before."""

    async def start_due(self) -> None:
        """Start what is due; until something is, the database is not asked."""
        now = self._runs.clock()
        if not self._expressions or (self._next is not None and now < self._next):
            return
        self._next = await self._runs.database.write(lambda c: self._start_due(c, now))

    def _start_due(self, connection: Connection, now: datetime) -> datetime:
        stored = {row.workflow: row for row in connection.execute(select(schedules))}
        upcoming: list[datetime] = []
        for name, expression in self._expressions.items():
            row = stored.get(name)
            following = _next_time(name, expression, now)
            if row is None or row.expression != expression:
                _store(connection, name, expression, following)
            elif row.next_at > stamp(now):
                following = datetime.fromisoformat(row.next_at)
            elif _move_on(connection, name, row.next_at, following):
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
