"""One row of the audit: who called what, when, and how it was decided."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection

from toolgate.db.tables import audit
from toolgate.gate.ids import Ids
from toolgate.gate.principal import Principal

STARTED = "started"
"""Error type of a write outside the database whose end is not known (yet)."""
TOGETHER = (50, 10, 1)
"""Rows in one statement: as many as there are, without a new statement for every number."""


def timestamp(*, seconds: float = 0) -> str:
    """Now, or so many seconds from now, as stored: UTC with microseconds."""
    return _stamp(time.time_ns() + round(seconds * 1e9))


def _stamp(nanoseconds: int) -> str:
    whole, microseconds = divmod(nanoseconds // 1000, 1_000_000)
    return f"{_second(whole)}.{microseconds:06}Z"


@lru_cache(maxsize=8)
def _second(since_1970: int) -> str:
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%S")


Ended = tuple[str, str, Principal, str, bool, str, str | None, int, float]
"""What a row is made of once there is time: request id, transport, caller, name of the tool,
whether it was allowed, by which rule, error type, when it ended in nanoseconds, how many seconds it
took. A bare tuple, since one is made for every call; making rows of many at once is quicker."""


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


new_id = Ids().new
"""A name for one more row."""


def record_of(ended: Ended) -> Record:
    """The row of a call."""
    request_id, transport, principal, tool_name, allowed, rule, error_type, when, seconds = ended
    return Record(
        new_id(),
        _stamp(when),
        request_id,
        transport,
        *principal.audited,
        tool_name,
        "allow" if allowed else "deny",
        rule,
        "success" if error_type is None else "error",
        error_type,
        round(seconds * 1000),
    )


def store(connection: Connection, records: Sequence[Record]) -> None:
    """Insert rows that are to be sealed later."""
    _insert(connection, Record._fields, records)


def store_numbered(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows with their number and the number of their seal at the end."""
    _insert(connection, (*Record._fields, audit.c.seq.name, audit.c.seal.name), rows)


def _insert(
    connection: Connection, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Many rows in one statement: the driver gives way to other threads at each statement."""
    first = 0
    for together in TOGETHER:
        while len(rows) - first >= together:
            _execute(connection, columns, rows[first : first + together])
            first += together


def _execute(
    connection: Connection, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    statement = _statement(connection.dialect.name, columns, len(rows))
    connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows)))


@lru_cache
def _statement(dialect: str, columns: tuple[str, ...], rows: int) -> str:
    # Written out: for rows of plain values, SQLAlchemy's work on each costs more than storing it.
    mark = "?" if dialect == "sqlite" else "%s"
    row = f"({', '.join([mark] * len(columns))})"
    # Names from our own table, values as parameters.
    return f"INSERT INTO {audit.name} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608
