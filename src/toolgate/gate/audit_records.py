"""One row of the audit: who called what, when, and how it was decided."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from toolgate.db.prepared import translated
from toolgate.db.row_writes import RowWrite, insertion
from toolgate.db.tables import audit
from toolgate.gate.ids import Ids
from toolgate.gate.principal import AuditFields, Principal

STARTED = "started"
"""Error type of a write outside the database whose end is not known (yet)."""
TOGETHER = (50, 20, 10, 5, 2, 1)
"""Rows in one statement: as many as there are, without a new statement for every number."""
ALIKE = 10
"""So many rows a caller, and what is said of it is written once for all of them."""
FEW = 25
"""Rows for which a thread keeps the interpreter to itself: some 50 µs."""
T = TypeVar("T")


def in_batches(rows: Sequence[T], size: int = FEW) -> Iterator[Sequence[T]]:
    """A few rows at a time; after them other threads go first.

    For a thread that works beside the event loop: a call that comes meanwhile waits for the end of
    a batch, and not of all (docs/decisions/0039).
    """
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
        let_others_go_first()


def let_others_go_first() -> None:
    """Leave the interpreter, and the core, to a thread that waits for them."""
    if hasattr(os, "sched_yield"):  # not on Windows
        os.sched_yield()


def timestamp(*, seconds: float = 0) -> str:
    """Now, or so many seconds from now, as stored: UTC with microseconds."""
    return _stamp(time.time_ns() + round(seconds * 1e9))


def _stamp(nanoseconds: int) -> str:
    seconds, microseconds = divmod(nanoseconds // 1000, 1_000_000)
    return f"{_second(seconds)}.{microseconds:06}Z"


@lru_cache(maxsize=8)
def _second(since_1970: int) -> str:
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class Ended(NamedTuple):
    """How a call ended; its row is made once there is time: of many at once it is quicker."""

    request_id: str
    transport: str
    principal: Principal
    tool: str
    """Its name, as far as it can be told."""
    allowed: bool
    rule: str
    error_type: str | None
    ids: Mapping[str, str] | None
    """That the arguments name, and what else was found about the caller, by column."""
    nanoseconds: int
    """When it was."""
    seconds: float
    """How long it took."""


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
    client_id: str | None
    grant_id: str | None
    tool_name: str
    decision: str
    rule: str
    status: str
    error_type: str | None
    duration_ms: int
    times: int = 1
    """How many calls the row stands for."""


new_id = Ids().new
"""A name for one more row."""


def record_of(ended: Ended, id: str | None = None) -> Record:
    """The row of a call, with a new id unless it has one."""
    request_id, transport, principal, tool, allowed, rule, error_type, ids, at, seconds = ended
    caller = principal.audit_fields
    fields = (
        id or new_id(),
        _stamp(at),
        request_id,
        transport,
        *(caller._replace(**ids) if ids else caller),
        tool,
        "allow" if allowed else "deny",
        rule,
        "success" if error_type is None else "error",
        error_type,
        round(seconds * 1000),
        1,
    )
    # Not `Record(…)`, which is one more function for every row.
    return tuple.__new__(Record, fields)  # pyright: ignore[reportUnknownMemberType]


_FIRST = Record._fields.index(AuditFields._fields[0])
CALLER = slice(_FIRST, _FIRST + len(AuditFields._fields))
"""Where a record speaks of the caller."""
OWN = (*Record._fields[: CALLER.start], *Record._fields[CALLER.stop :])


def store(connection: Connection, records: Sequence[Record]) -> None:
    """Insert rows that are to be sealed later."""
    for record in records:
        own = (*record[: CALLER.start], *record[CALLER.stop :])
        _insert(connection, dict(zip(AuditFields._fields, record[CALLER], strict=True)), OWN, [own])


PART = insertion(audit, Record._fields)
COPY = f"COPY {audit.name} ({', '.join((*Record._fields, 'seq', 'seal'))}) FROM STDIN"


def rows_of(records: Sequence[Record]) -> RowWrite:
    """The same rows as `store` stores."""
    return RowWrite(PART, records)


def store_numbered(
    connection: Connection, records: Sequence[Record], numbers: Sequence[int], seal: int
) -> None:
    """Insert rows with their numbers, under a seal."""
    numbered = list(zip(records, numbers, strict=True))
    if connection.dialect.name == "postgresql":
        return _copy(connection, [(*record, number, seal) for record, number in numbered])
    shared: dict[str, Any] = {audit.c.seal.name: seal}
    rows = [(*record, number) for some in in_batches(numbered) for record, number in some]
    by_caller: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for some in in_batches(rows):
        for row in some:
            by_caller.setdefault(row[CALLER], []).append(row)
    if len(by_caller) * ALIKE > len(records):
        return _insert(connection, shared, (*Record._fields, audit.c.seq.name), rows)
    for caller, theirs in by_caller.items():
        known = dict(zip(AuditFields._fields, caller, strict=True))
        own = [
            (*row[: CALLER.start], *row[CALLER.stop :])
            for some in in_batches(theirs)
            for row in some
        ]
        _insert(connection, shared | known, (*OWN, audit.c.seq.name), own)
    return None


def _copy(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Many rows into PostgreSQL: an INSERT of so many values costs its driver five times that."""
    driver: Any = connection.connection.dbapi_connection
    try:
        with driver.cursor() as cursor, cursor.copy(COPY) as copy:
            for some in in_batches(rows):
                for row in some:
                    copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as problem:
        raise translated(problem, COPY, connection.dialect) from problem


def _insert(
    connection: Connection,
    shared: dict[str, Any],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Many rows in one statement, and what they have in common only once.

    The one makes storing a row a third cheaper, the other halves the rest.
    """
    dialect = connection.dialect.name
    for some in in_batches(rows, TOGETHER[0]):
        first = 0
        for together in TOGETHER:
            while len(some) - first >= together:
                statement = _statement(dialect, tuple(shared), columns, together)
                own = chain.from_iterable(some[first : first + together])
                connection.exec_driver_sql(statement, _values(dialect, (*shared.values(), *own)))
                first += together


def _values(dialect: str, values: tuple[Any, ...]) -> Any:
    if dialect == "sqlite":
        return values
    return {f"p{number}": one for number, one in enumerate(values, 1)}


@lru_cache
def _statement(dialect: str, shared: tuple[str, ...], columns: tuple[str, ...], rows: int) -> str:
    # Written out: for rows of plain values, SQLAlchemy's work on each costs more than storing it.
    mark = "?{}" if dialect == "sqlite" else "%(p{})s"
    common = [mark.format(1 + number) for number in range(len(shared))]
    own = [mark.format(1 + len(shared) + number) for number in range(len(columns) * rows)]
    places = [own[first : first + len(columns)] for first in range(0, len(own), len(columns))]
    rows_of_values = ", ".join(f"({', '.join(common + one)})" for one in places)
    # Names from our own table, values as parameters.
    return f"INSERT INTO {audit.name} ({', '.join(shared + columns)}) VALUES {rows_of_values}"  # noqa: S608
