"""One row of the audit: who called what, when, and how it was decided."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from toolgate.db.tables import audit
from toolgate.gate.ids import Ids

_ids = Ids()

STARTED = "started"
"""Error type of a write outside the database whose end is not known (yet)."""


def timestamp(*, seconds: float = 0) -> str:
    """Now, or so many seconds from now, as stored: UTC with microseconds."""
    then = datetime.now(UTC)
    if seconds:
        then += timedelta(seconds=seconds)
    return then.isoformat(timespec="microseconds")[:26] + "Z"


class Record(NamedTuple):
    """One row. A tuple, because it is made for every call and goes to the driver as it is."""

    id: str
    created_at: str
    request_id: str
    transport: str
    subject_type: str
    subject_id: str
    user_id: str | None
    agent_type: str | None
    role_names: str
    group_ids: str
    project_id: str | None
    task_id: str | None
    run_id: str | None
    job_id: str | None
    tool_name: str
    decision: str
    rule: str
    status: str
    error_type: str | None
    duration_ms: int


def new_id() -> str:
    """A name for one more row."""
    return _ids.new()


def store(connection: Connection, records: Sequence[Record]) -> None:
    """Insert rows that are to be sealed later."""
    connection.exec_driver_sql(_insert(connection.dialect.name, Record._fields), list(records))


def store_numbered(connection: Connection, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows with their number and the number of their seal at the end."""
    columns = (*Record._fields, audit.c.seq.name, audit.c.seal.name)
    connection.exec_driver_sql(_insert(connection.dialect.name, columns), rows)


@lru_cache
def _insert(dialect: str, columns: tuple[str, ...]) -> str:
    # Written out: for rows of plain values, SQLAlchemy's work on each costs more than storing it.
    mark = "?" if dialect == "sqlite" else "%s"
    values = ", ".join([mark] * len(columns))
    # Names from our own table, values as parameters.
    return f"INSERT INTO {audit.name} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608
